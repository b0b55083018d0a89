#include "kube/codec/reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::kube {

Reader Reader::get(std::string_view key) const& {
  if (!missing() && !value_.is_object()) fail_unwanted("an object");
  return Reader(value_.get(key), this, key, kNoIndex);
}

void Reader::require_object() const {
  if (!value_.is_object()) fail_unwanted("an object");
}

bool Reader::expect(Json::Kind kind, std::string_view wanted) const {
  if (missing()) return false;
  if (value_.kind() == kind) return true;
  fail_unwanted(wanted);
  return false;
}

std::string Reader::string() const {
  return optional_string().value_or(std::string());
}

std::optional<std::string> Reader::optional_string() const {
  if (!expect(Json::Kind::kString, "a string")) return std::nullopt;
  return std::string(value_.string_or(""));
}

std::string Reader::word(std::initializer_list<std::string_view> allowed) const {
  std::string text = string();
  if (text.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  fail_unwanted(fmt::format("one of {}", fmt::join(allowed, ", ")));
  return {};
}

std::vector<std::string> Reader::strings() const {
  std::vector<std::string> result;
  each([&](const Reader& element) { result.push_back(element.string()); });
  return result;
}

std::map<std::string, std::string> Reader::string_map() const {
  std::map<std::string, std::string> result;
  each_member(
      [&](std::string_view key, const Reader& member) { result.emplace(key, member.string()); });
  return result;
}

bool Reader::boolean(bool fallback) const {
  if (!expect(Json::Kind::kBool, "true or false")) return fallback;
  return value_.bool_or(fallback);
}

std::int64_t Reader::integer(std::int64_t low, std::int64_t high, std::int64_t fallback) const {
  return optional_integer(low, high).value_or(fallback);
}

std::optional<std::int64_t> Reader::optional_integer(std::int64_t low, std::int64_t high) const {
  if (missing()) return std::nullopt;
  const Result<std::int64_t> number = value_.as_int();
  if (number && *number >= low && *number <= high) return *number;
  fail_unwanted(fmt::format("an integer from {} to {}", low, high));
  return std::nullopt;
}

std::optional<Quantity> Reader::quantity() const {
  if (missing()) return std::nullopt;
  if (!value_.is_string() && value_.kind() != Json::Kind::kNumber) {
    fail_unwanted("a quantity");
    return std::nullopt;
  }
  std::string_view text = value_.string_or("");
  const std::string number = value_.is_string() ? std::string() : value_.dump();
  if (!value_.is_string()) text = number;
  // The API server trims white space too.
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const Result<Quantity> quantity = Quantity::parse(text);
  if (quantity) return *quantity;
  fail(quantity.error().message);
  return std::nullopt;
}

QuantityMap Reader::quantities() const {
  QuantityMap result;
  each_member([&](std::string_view key, const Reader& member) {
    result.emplace(ResourceName(key), member.quantity().value_or(Quantity()));
  });
  return result;
}

std::optional<Instant> Reader::time() const {
  if (!expect(Json::Kind::kString, "a time")) return std::nullopt;
  const Result<Instant> at = parse_rfc3339(value_.string_or(""));
  if (at) return *at;
  fail(at.error().message);
  return std::nullopt;
}

void Reader::fail(std::string message, ErrorCode code) const {
  if (errors_->any()) return;
  const std::string where = path();
  errors_->set(Error{code, where.empty() ? std::move(message) : where + ": " + message});
}

void Reader::fail_unwanted(std::string_view wanted) const {
  if (errors_->any()) return;
  fail(fmt::format("got {}, want {}", describe(value_), wanted));
}

std::string Reader::path() const {
  if (parent_ == nullptr) return {};
  std::string path = parent_->path();
  if (index_ != kNoIndex) return path + fmt::format("[{}]", index_);
  // Keys with dots or slashes (labels, resources) would blur the path.
  if (key_.find_first_of("./[]") != std::string_view::npos)
    return path + fmt::format("[\"{}\"]", key_.substr(0, 64));
  if (!path.empty()) path.push_back('.');
  return path.append(key_.substr(0, 64));
}

}  // namespace muster::kube
