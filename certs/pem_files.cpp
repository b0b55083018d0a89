#include "certs/pem_files.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace muster::certs {
namespace {

constexpr std::size_t kMaxPemBytes = 1U << 20U;

Error errno_error(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return Error{code, path + ": " + std::strerror(error)};
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool write_all(int descriptor, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return ::fsync(descriptor) == 0;
}

}  // namespace

Result<std::string> read_pem_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return fail(errno_error(path, errno));
  std::string text;
  std::array<char, 16'384> chunk;
  for (;;) {
    const ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errno_error(path, errno));
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxPemBytes) return fail(ErrorCode::kTooLarge, path + ": above 1 MiB");
  }
}

Result<void> write_pem_file(const std::string& path, const std::string& pem, FileKind kind) {
  const std::string beside = path + ".new";
  const mode_t mode = kind == FileKind::kPrivateKey ? 0600 : 0644;
  ::unlink(beside.c_str());  // One left by a crash may have another mode.
  const FileDescriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.get() < 0) return fail(errno_error(beside, errno));
  if (!write_all(file.get(), pem) || ::rename(beside.c_str(), path.c_str()) != 0) {
    const Error error = errno_error(path, errno);
    ::unlink(beside.c_str());
    return fail(error);
  }
  return {};
}

Result<KeyPair> load_pair(const std::string& certificate_path, const std::string& key_path) {
  Result<std::string> certificate = read_pem_file(certificate_path);
  if (!certificate) return fail(certificate.error());
  Result<std::string> key = read_pem_file(key_path);
  if (!key) return fail(key.error());
  KeyPair pair{std::move(*certificate), std::move(*key)};
  const Result<void> matching = check_pair(pair);
  if (!matching) return fail(matching.error().with_context(certificate_path + ", " + key_path));
  return pair;
}

Result<ServerTls> load_server_tls(const ServerTlsFiles& files) {
  Result<KeyPair> pair = load_pair(files.certificate_path, files.key_path);
  if (!pair) return fail(pair.error());
  ServerTls tls;
  tls.pair = std::move(*pair);
  tls.require_client_certificate = files.require_client_certificate;
  if (files.client_ca_path) {
    Result<std::string> ca = read_pem_file(*files.client_ca_path);
    if (!ca) return fail(ca.error());
    const Result<CertificateInfo> info = inspect(*ca);
    if (!info) return fail(info.error().with_context(*files.client_ca_path));
    tls.client_ca_pem = std::move(*ca);
  }
  return tls;
}

Result<ServerTlsReloader> ServerTlsReloader::open(ServerTlsFiles files) {
  Result<ServerTls> loaded = load_server_tls(files);
  if (!loaded) return fail(loaded.error());
  Result<TlsContext> context = make_server_context(*loaded);
  if (!context) return fail(context.error().with_context(files.certificate_path));
  return ServerTlsReloader(std::move(files), std::move(*loaded),
                           std::make_shared<TlsSlot>(std::move(*context)));
}

Result<bool> ServerTlsReloader::poll() {
  Result<ServerTls> loaded = load_server_tls(files_);
  if (!loaded) return fail(loaded.error());
  if (loaded->pair == loaded_.pair && loaded->client_ca_pem == loaded_.client_ca_pem) return false;
  Result<TlsContext> context = make_server_context(*loaded);
  if (!context) return fail(context.error().with_context(files_.certificate_path));
  slot_->set(std::move(*context));
  loaded_ = std::move(*loaded);
  return true;
}

}  // namespace muster::certs
