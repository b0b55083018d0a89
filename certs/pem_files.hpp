#pragma once
// PEM files on disk: reading them with errors that name the file, writing them with the right mode,
// and noticing that somebody (cert-manager, the kubelet, an admin) replaced them.

#include "base/result.hpp"
#include "certs/certs.hpp"
#include "certs/tls_context.hpp"

#include <memory>
#include <optional>
#include <string>

namespace muster::certs {

/// The whole file, at most 1 MiB. kNotFound when it does not exist.
[[nodiscard]] Result<std::string> read_pem_file(const std::string& path);

/// Replaces `path` in one step (write beside it, fsync, rename). Keys get mode 0600, others 0644.
enum class FileKind { kPublic, kPrivateKey };
[[nodiscard]] Result<void> write_pem_file(const std::string& path, const std::string& pem,
                                          FileKind kind);

/// Reads both files and checks that they belong together.
[[nodiscard]] Result<KeyPair> load_pair(const std::string& certificate_path,
                                        const std::string& key_path);

struct ServerTlsFiles {
  std::string certificate_path;
  std::string key_path;
  std::optional<std::string> client_ca_path{};
  bool require_client_certificate = true;
};
[[nodiscard]] Result<ServerTls> load_server_tls(const ServerTlsFiles& files);

/// Keeps a TlsSlot equal to its files. The owner polls it (every few seconds is plenty); contents
/// are compared, not times, so the symlink swap of a mounted Secret is seen too.
class ServerTlsReloader {
 public:
  /// Loads the files once; an error here is a start-up error.
  [[nodiscard]] static Result<ServerTlsReloader> open(ServerTlsFiles files);

  [[nodiscard]] std::shared_ptr<TlsSlot> slot() const { return slot_; }

  /// True when new contents were swapped in. On an error (a half-written pair, say) the old context
  /// stays in use and the next poll tries again.
  [[nodiscard]] Result<bool> poll();

 private:
  ServerTlsReloader(ServerTlsFiles files, ServerTls loaded, std::shared_ptr<TlsSlot> slot)
      : files_(std::move(files)), loaded_(std::move(loaded)), slot_(std::move(slot)) {}

  ServerTlsFiles files_;
  ServerTls loaded_;
  std::shared_ptr<TlsSlot> slot_;
};

}  // namespace muster::certs
