#pragma once
// The token (or plugin certificate) of the moment, renewed when it is due.

#include "kube/client/exec_plugin.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <vector>

namespace muster::kube {

/// Used on one strand; a plugin runs on a thread of its own, once for all who wait for it.
class CredentialSource : public std::enable_shared_from_this<CredentialSource> {
 public:
  CredentialSource(boost::asio::any_io_executor strand, TokenSource source);
  /// Ends a running plugin and waits for its thread.
  ~CredentialSource();

  /// `refused`: the server answered 401 to the last one, so a cached one is of no use.
  boost::asio::awaitable<Result<Credential>> get(bool refused);

  /// True when a 401 may be cured by asking again.
  [[nodiscard]] bool is_renewable() const;

  /// Lets waiters go with an error.
  void stop();

 private:
  Result<Credential> read_token_file(const TokenFile& file, bool refused);
  void start_plugin(const ExecPlugin& plugin);
  void on_plugin(Result<Credential> credential);

  boost::asio::any_io_executor strand_;
  TokenSource source_;
  Result<Credential> cached_;
  std::chrono::steady_clock::time_point read_at_;
  bool plugin_running_ = false;
  std::vector<std::shared_ptr<boost::asio::steady_timer>> waiting_;
  std::stop_source stop_;
  boost::asio::thread_pool plugin_thread_{1};
};

}  // namespace muster::kube
