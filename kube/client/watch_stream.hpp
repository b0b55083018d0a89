#pragma once
// One running watch: its connection, its coroutine, and the handle that ends it.

#include "kube/client/api_client_impl.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace muster::kube {

class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(std::shared_ptr<ApiClient::Impl> client, WatchCall call, WatchHandlers handlers);

  static std::unique_ptr<WatchHandle> start(const std::shared_ptr<ApiClient::Impl>& client,
                                            WatchCall call, WatchHandlers handlers);

  /// Ends it without a word.
  void close_on_strand();
  void cancel();

 private:
  static boost::asio::awaitable<void> run(std::shared_ptr<WatchStream> self);
  boost::asio::awaitable<Result<void>> stream();
  boost::asio::awaitable<Result<void>> open();
  // False when a line is above its limit.
  bool hand_out_lines();

  std::shared_ptr<ApiClient::Impl> client_;
  WatchCall call_;
  WatchHandlers handlers_;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<HttpConnection> connection_;
  std::string text_;          // what has come and was not handed out yet
  std::size_t searched_ = 0;  // this much of text_ holds no line end
};

}  // namespace muster::kube
