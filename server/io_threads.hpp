#pragma once
// An io_context with threads of its own, kept alive until stopped.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <thread>
#include <vector>

namespace muster::server {

class IoThreads {
 public:
  explicit IoThreads(std::size_t threads) : guard_(boost::asio::make_work_guard(io_)) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  ~IoThreads() { stop(); }
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  [[nodiscard]] boost::asio::io_context& context() { return io_; }

  /// Ends the threads after the handlers in hand; what is still queued is dropped.
  void stop() {
    guard_.reset();
    io_.stop();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

}  // namespace muster::server
