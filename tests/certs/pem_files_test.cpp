#include "certs/pem_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster::certs {
namespace {

const Validity kYear{Instant{1'700'000'000'000'000},
                     Instant{1'700'000'000'000'000} + std::chrono::hours(24 * 365)};

class PemFiles : public ::testing::Test {
 protected:
  PemFiles() {
    std::string name = ::testing::TempDir() + "muster-pem-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    ca_ = issue_ca({.common_name = "ca", .validity = kYear}).value();
  }
  ~PemFiles() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] KeyPair issue() const {
    return issue_leaf(ca_, {.common_name = "leaf", .validity = kYear}).value();
  }
  void store(const KeyPair& pair) const {
    ASSERT_TRUE(write_pem_file(path("tls.crt"), pair.certificate_pem, FileKind::kPublic));
    ASSERT_TRUE(write_pem_file(path("tls.key"), pair.key_pem, FileKind::kPrivateKey));
  }
  [[nodiscard]] ServerTlsFiles files() const {
    return {.certificate_path = path("tls.crt"), .key_path = path("tls.key")};
  }

  std::string directory_;
  KeyPair ca_;
};

TEST_F(PemFiles, KeysAreReadableByTheirOwnerOnly) {
  store(issue());
  struct stat status{};
  ASSERT_EQ(::stat(path("tls.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path("tls.key.new")));
}

TEST_F(PemFiles, WritingAndLoadingGivesTheSamePair) {
  const KeyPair pair = issue();
  store(pair);
  const Result<KeyPair> loaded = load_pair(path("tls.crt"), path("tls.key"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, pair);
}

TEST_F(PemFiles, ErrorsNameTheFile) {
  const Result<KeyPair> missing = load_pair(path("none.crt"), path("none.key"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("none.crt"), std::string::npos);

  store(issue());
  ASSERT_TRUE(write_pem_file(path("tls.key"), issue().key_pem, FileKind::kPrivateKey));
  const Result<KeyPair> mixed = load_pair(path("tls.crt"), path("tls.key"));
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().message.find("tls.key: the private key does not belong"),
            std::string::npos)
      << mixed.error().message;

  EXPECT_FALSE(read_pem_file(directory_));
  std::ofstream(path("big")) << std::string((1U << 20U) + 1, 'x');
  EXPECT_EQ(read_pem_file(path("big")).error().code, ErrorCode::kTooLarge);
  EXPECT_FALSE(write_pem_file(path("no/such/dir"), "x", FileKind::kPublic));
}

TEST_F(PemFiles, ReloadSwapsOnceForNewContentAndKeepsTheOldOneWhileFilesAreBroken) {
  store(issue());
  Result<ServerTlsReloader> reloader = ServerTlsReloader::open(files());
  ASSERT_TRUE(reloader) << reloader.error().message;
  const TlsContext first = reloader->slot()->get();
  EXPECT_FALSE(reloader->poll().value());

  const KeyPair next = issue();
  ASSERT_TRUE(write_pem_file(path("tls.crt"), next.certificate_pem, FileKind::kPublic));
  EXPECT_FALSE(reloader->poll());  // The certificate is new, the key still old.
  EXPECT_EQ(reloader->slot()->get(), first);

  ASSERT_TRUE(write_pem_file(path("tls.key"), next.key_pem, FileKind::kPrivateKey));
  EXPECT_TRUE(reloader->poll().value());
  EXPECT_NE(reloader->slot()->get(), first);
  EXPECT_FALSE(reloader->poll().value());
}

TEST_F(PemFiles, AMountedSecretSwappedBySymlinkIsSeen) {
  namespace fs = std::filesystem;
  for (const char* generation : {"one", "two"}) {
    fs::create_directory(path(generation));
    const KeyPair pair = issue();
    ASSERT_TRUE(
        write_pem_file(path(generation) + "/tls.crt", pair.certificate_pem, FileKind::kPublic));
    ASSERT_TRUE(write_pem_file(path(generation) + "/tls.key", pair.key_pem, FileKind::kPrivateKey));
  }
  fs::create_directory_symlink("one", path("..data"));
  fs::create_symlink("..data/tls.crt", path("tls.crt"));
  fs::create_symlink("..data/tls.key", path("tls.key"));
  Result<ServerTlsReloader> reloader = ServerTlsReloader::open(files());
  ASSERT_TRUE(reloader);
  fs::create_directory_symlink("two", path("..data_tmp"));
  fs::rename(path("..data_tmp"), path("..data"));
  EXPECT_TRUE(reloader->poll().value());
}

TEST_F(PemFiles, ContextsRefuseWhatCannotWork) {
  const KeyPair pair = issue();
  EXPECT_TRUE(make_server_context({.pair = pair}));
  EXPECT_TRUE(make_server_context({.pair = pair, .client_ca_pem = ca_.certificate_pem}));
  EXPECT_TRUE(make_client_context({.ca_pem = ca_.certificate_pem, .pair = pair}));
  EXPECT_FALSE(make_server_context({}));
  EXPECT_FALSE(make_server_context({.pair = pair, .client_ca_pem = "nothing"}));
  EXPECT_FALSE(make_client_context({.ca_pem = ""}));
  EXPECT_FALSE(make_client_context(
      {.ca_pem = ca_.certificate_pem, .pair = KeyPair{pair.certificate_pem, ca_.key_pem}}));
}

}  // namespace
}  // namespace muster::certs
