#include "kube/client/watch_stream.hpp"

#include "base/log.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

namespace muster::kube {
namespace asio = boost::asio;

namespace {

// The header of a watch comes at once, or after the API server has waited for its own cache.
constexpr auto kOpenTimeout = std::chrono::seconds(30);

class Handle final : public WatchHandle {
 public:
  explicit Handle(std::shared_ptr<WatchStream> watch) : watch_(std::move(watch)) {}
  ~Handle() override { watch_->cancel(); }
  void cancel() override { watch_->cancel(); }

 private:
  std::shared_ptr<WatchStream> watch_;
};

struct LogFault {
  void operator()(const std::exception_ptr& exception) const {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const std::exception& fault) {
      log::error("API client: a watch ended by {}", fault.what());
    }
  }
};

}  // namespace

WatchStream::WatchStream(std::shared_ptr<ApiClient::Impl> client, WatchCall call,
                         WatchHandlers handlers)
    : client_(std::move(client)), call_(std::move(call)), handlers_(std::move(handlers)) {}

std::unique_ptr<WatchHandle> WatchStream::start(const std::shared_ptr<ApiClient::Impl>& client,
                                                WatchCall call, WatchHandlers handlers) {
  auto watch = std::make_shared<WatchStream>(client, std::move(call), std::move(handlers));
  asio::post(client->strand, [client, watch] {
    if (client->stopped || watch->cancelled_) return;
    std::erase_if(client->watches, [](const auto& weak) { return weak.expired(); });
    client->watches.push_back(watch);
    asio::co_spawn(client->strand, run(watch), LogFault{});
  });
  return std::make_unique<Handle>(std::move(watch));
}

void WatchStream::close_on_strand() {
  cancelled_ = true;
  if (connection_) connection_->close();
}

void WatchStream::cancel() {
  cancelled_ = true;
  auto self = shared_from_this();
  asio::post(client_->strand, [self] { self->close_on_strand(); });
}

asio::awaitable<void> WatchStream::run(std::shared_ptr<WatchStream> self) {
  Result<void> end = co_await self->stream();
  self->connection_.reset();
  const WatchHandlers handlers = std::move(self->handlers_);
  if (!self->cancelled_) handlers.on_end(std::move(end));
}

asio::awaitable<Result<void>> WatchStream::stream() {
  const std::string where =
      "watch " + call_.path_and_query.substr(0, call_.path_and_query.find('?'));
  Result<void> opened = co_await open();
  if (!opened) co_return fail(opened.error().with_context(where));
  while (!cancelled_) {
    Result<bool> more = co_await connection_->read_stream(text_, call_.idle_timeout);
    if (!more) co_return fail(more.error().with_context(where));
    if (!*more) break;
    const bool fits = hand_out_lines();
    if (!fits) {
      co_return fail(ErrorCode::kTooLarge,
                     fmt::format("{}: a line of more than {} bytes", where, call_.max_line_bytes));
    }
  }
  co_return Result<void>();
}

// A 401 is answered with a new credential and a second try.
asio::awaitable<Result<void>> WatchStream::open() {
  if (has_control_or_space(call_.path_and_query))
    co_return fail(invalid_argument("bad request target"));
  const HttpCall call{.path_and_query = call_.path_and_query};
  for (bool refresh = false;; refresh = true) {
    Result<Credential> credential = co_await client_->credentials->get(refresh);
    if (!credential) co_return fail(credential.error());
    Result<void> adopted = client_->adopt(*credential);
    if (!adopted) co_return adopted;
    if (cancelled_) co_return fail(ErrorCode::kUnavailable, "cancelled");
    connection_ = std::make_unique<HttpConnection>(client_->strand, client_->endpoint());
    Result<void> connected = co_await connection_->open(client_->options.connect_timeout);
    if (!connected) co_return connected;
    const std::string request = client_->render(call, *credential);
    Exchange exchange = co_await connection_->start_stream(request, kOpenTimeout);
    if (!exchange.answer) co_return fail(exchange.answer.error());
    const int status = exchange.answer->status;
    if (status / 100 == 2) co_return Result<void>();
    if (status != 401 || refresh || !client_->credentials->is_renewable())
      co_return fail(error_from_status(status, "refused", exchange.answer->body));
  }
}

bool WatchStream::hand_out_lines() {
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text_.find('\n', std::max(begin, searched_));
    if (end == std::string::npos) break;
    if (end - begin > call_.max_line_bytes) return false;
    const std::string_view line = std::string_view(text_).substr(begin, end - begin);
    if (!line.empty() && !cancelled_) handlers_.on_line(line);
    begin = end + 1;
  }
  text_.erase(0, begin);
  searched_ = text_.size();
  return text_.size() <= call_.max_line_bytes;
}

}  // namespace muster::kube
