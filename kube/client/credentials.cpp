#include "kube/client/credentials.hpp"

#include "certs/pem_files.hpp"
#include "kube/client/byte_stream.hpp"

#include <boost/asio/post.hpp>

namespace muster::kube {
namespace asio = boost::asio;

namespace {

constexpr auto kTokenFileAge = std::chrono::minutes(1);
constexpr auto kPluginTimeout = std::chrono::seconds(60);
// A credential is renewed this long before its end, so that none expires on the way.
constexpr auto kExpiryMargin = std::chrono::seconds(10);

Instant wall_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Instant{std::chrono::duration_cast<std::chrono::microseconds>(since).count()};
}

// A line end in a header would start another header.
Result<std::string> clean_token(std::string token) {
  const std::size_t end = token.find_last_not_of(" \t\r\n");
  token.erase(end == std::string::npos ? 0 : end + 1);
  for (const char c : token)
    if (c <= ' ' || c == '\x7f') return fail(invalid_argument("token: has a control character"));
  if (token.empty()) return fail(invalid_argument("token: is empty"));
  return token;
}

Result<Credential> from_token(std::string text) {
  Result<std::string> token = clean_token(std::move(text));
  if (!token) return fail(token.error());
  return Credential{.token = std::move(*token)};
}

}  // namespace

CredentialSource::CredentialSource(asio::any_io_executor strand, TokenSource source)
    : strand_(std::move(strand)), source_(std::move(source)), cached_(Credential{}) {
  if (const auto* fixed = std::get_if<StaticToken>(&source_)) cached_ = from_token(fixed->token);
  if (!is_renewable()) return;
  cached_ = fail(ErrorCode::kForbidden, "no credential yet");
}

CredentialSource::~CredentialSource() {
  stop_.request_stop();
  plugin_thread_.join();
}

bool CredentialSource::is_renewable() const {
  return std::holds_alternative<TokenFile>(source_) || std::holds_alternative<ExecPlugin>(source_);
}

Result<Credential> CredentialSource::read_token_file(const TokenFile& file, bool refused) {
  const auto now = std::chrono::steady_clock::now();
  if (cached_ && !refused && now - read_at_ < kTokenFileAge) return cached_;
  Result<std::string> text = certs::read_pem_file(file.path);
  Result<Credential> fresh = text ? from_token(std::move(*text)) : fail(text.error());
  // While the kubelet swaps the file, the last token is still the best there is.
  if (!fresh && cached_ && !refused) return cached_;
  if (!fresh) return fail(fresh.error().with_context(file.path));
  cached_ = std::move(fresh);
  read_at_ = now;
  return cached_;
}

asio::awaitable<Result<Credential>> CredentialSource::get(bool refused) {
  if (const auto* file = std::get_if<TokenFile>(&source_))
    co_return read_token_file(*file, refused);
  const auto* plugin = std::get_if<ExecPlugin>(&source_);
  if (plugin == nullptr) co_return cached_;
  const bool good =
      cached_ && !refused && (!cached_->expires || wall_now() + kExpiryMargin < *cached_->expires);
  if (good) co_return cached_;
  if (stop_.stop_requested()) co_return fail(ErrorCode::kUnavailable, "client stopped");
  if (!plugin_running_) start_plugin(*plugin);
  auto signal =
      std::make_shared<asio::steady_timer>(strand_, asio::steady_timer::time_point::max());
  waiting_.push_back(signal);
  auto [cancelled] = co_await signal->async_wait(kUseTuple);
  (void)cancelled;  // on_plugin() and stop() wake the waiters by cancelling.
  co_return cached_;
}

void CredentialSource::start_plugin(const ExecPlugin& plugin) {
  plugin_running_ = true;
  std::weak_ptr<CredentialSource> weak = weak_from_this();
  asio::post(plugin_thread_, [weak, plugin, strand = strand_, stop = stop_.get_token()] {
    Result<Credential> credential = run_exec_plugin(plugin, kPluginTimeout, stop);
    if (stop.stop_requested()) return;
    asio::post(strand, [weak, credential = std::move(credential)] {
      if (const std::shared_ptr<CredentialSource> self = weak.lock()) self->on_plugin(credential);
    });
  });
}

void CredentialSource::on_plugin(Result<Credential> credential) {
  plugin_running_ = false;
  cached_ = std::move(credential);
  if (cached_ && !cached_->token.empty()) {
    Result<std::string> token = clean_token(cached_->token);
    if (token) {
      cached_->token = std::move(*token);
    } else {
      cached_ = fail(token.error());
    }
  }
  for (const auto& signal : waiting_) signal->cancel();
  waiting_.clear();
}

void CredentialSource::stop() {
  stop_.request_stop();
  if (!waiting_.empty()) cached_ = fail(ErrorCode::kUnavailable, "client stopped");
  for (const auto& signal : waiting_) signal->cancel();
  waiting_.clear();
}

}  // namespace muster::kube
