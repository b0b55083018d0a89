#include "server/options.hpp"

#include <fmt/format.h>

#include <charconv>

namespace muster::server {

Result<std::optional<Endpoint>> parse_endpoint(const std::string& text) {
  if (text == "none") return std::optional<Endpoint>();
  const auto wrong = [&] {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("bad address \"{}\" (want HOST:PORT, e.g. 127.0.0.1:9444, or none)", text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong();
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return wrong();
  }
  if (host == "localhost") host = "127.0.0.1";
  std::uint16_t port = 0;
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(begin, end, port);
  if (error != std::errc() || last != end || begin == end) return wrong();
  return std::optional<Endpoint>(Endpoint{std::move(host), port});
}

}  // namespace muster::server
