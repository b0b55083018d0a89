#include "webhook/syntax.hpp"

#include "base/time.hpp"
#include "webhook/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster::webhook {
namespace {

using kube::Json;

constexpr std::size_t kNameLength = 63;
constexpr std::size_t kSubdomainLength = 253;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
bool is_alphanumeric(char c) {
  return is_letter(c) || is_digit(c);
}

bool is_name_part(std::string_view text) {
  if (text.empty() || text.size() > kNameLength) return false;
  if (!is_alphanumeric(text.front()) || !is_alphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string shown(std::string_view text) {
  return fmt::format("\"{}\"", text.substr(0, 100));
}

}  // namespace

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > kSubdomainLength) return false;
  bool boundary = true;  // At the start of a label, or just behind one's `-`-free end.
  char last = '.';
  for (const char c : text) {
    if (c == '.') {
      if (boundary || last == '-') return false;
      boundary = true;
    } else if (c == '-') {
      if (boundary) return false;
    } else if (is_lower(c) || is_digit(c)) {
      boundary = false;
    } else {
      return false;
    }
    last = c;
  }
  return last != '.' && last != '-';
}

bool is_qualified_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_name_part(text);
  return is_dns_subdomain(text.substr(0, slash)) && is_name_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) {
  return text.empty() || is_name_part(text);
}

std::optional<Quantity> check_quantity(const Json& value, const std::string& path,
                                       FieldErrors& errors) {
  const std::string text = value.is_string() ? std::string(value.string_or("")) : value.dump();
  const auto quantity = Quantity::parse(text);
  if (!quantity) {
    errors.push_back({path, FieldErrorCode::kInvalid,
                      shown(text) + " is no quantity (want e.g. \"8\", \"500m\" or \"1Gi\")"});
    return std::nullopt;
  }
  if (quantity->is_negative()) {
    errors.push_back({path, FieldErrorCode::kInvalid, shown(text) + " is below zero"});
    return std::nullopt;
  }
  return *quantity;
}

void check_label_key(std::string_view key, const std::string& path, FieldErrors& errors) {
  if (is_qualified_name(key)) return;
  errors.push_back({path, FieldErrorCode::kInvalid,
                    shown(key) + " is no valid name (want e.g. \"nvidia.com/gpu\" or \"cpu\")"});
}

void check_labels(const Json& labels, const std::string& path, FieldErrors& errors) {
  for (const auto& [key, value] : labels.members()) {
    check_label_key(key, path, errors);
    if (is_label_value(value.string_or("!"))) continue;
    errors.push_back({fmt::format("{}[{}]", path, key), FieldErrorCode::kInvalid,
                      shown(value.string_or("")) + " is no label value (want up to 63 letters, "
                                                   "digits, '-', '_' or '.')"});
  }
}

void check_annotations(const Json& annotations, const std::string& path, FieldErrors& errors) {
  for (const auto& [key, value] : annotations.members()) check_label_key(key, path, errors);
}

void check_muster_metadata(const Json& metadata, const std::string& path, FieldErrors& errors) {
  const Json preemptible = metadata.get("labels", kPreemptibleLabel);
  if (preemptible.present() && preemptible.string_or("") != "true" &&
      preemptible.string_or("") != "false") {
    errors.push_back({fmt::format("{}.labels[{}]", path, kPreemptibleLabel),
                      FieldErrorCode::kNotSupported,
                      shown(preemptible.string_or("")) + " (want \"true\" or \"false\")"});
  }
  for (const char* name : {kMinRuntimeAnnotation, kCheckpointGraceAnnotation}) {
    const Json value = metadata.get("annotations", name);
    if (!value.present()) continue;
    const auto duration = parse_duration(value.string_or(""));
    if (duration && duration->count() >= 0) continue;
    errors.push_back({fmt::format("{}.annotations[{}]", path, name), FieldErrorCode::kInvalid,
                      shown(value.string_or("")) + " is no duration (want e.g. \"30m\")"});
  }
  const Json checkpoint = metadata.get("annotations", kLastCheckpointAnnotation);
  if (checkpoint.present() && !parse_rfc3339(checkpoint.string_or(""))) {
    errors.push_back({fmt::format("{}.annotations[{}]", path, kLastCheckpointAnnotation),
                      FieldErrorCode::kInvalid,
                      shown(checkpoint.string_or("")) +
                          " is no RFC 3339 time (want e.g. \"2026-11-29T16:00:00Z\")"});
  }
}

void check_same_protection(const Json& before, const Json& now, const std::string& why,
                           FieldErrors& errors) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTerms = {
      {{"labels", kPreemptibleLabel},
       {"annotations", kMinRuntimeAnnotation},
       {"annotations", kCheckpointGraceAnnotation}}};
  for (const auto& [map, key] : kTerms) {
    if (now.get("metadata", map, key) == before.get("metadata", map, key)) continue;
    errors.push_back({fmt::format("metadata.{}[{}]", map, key), FieldErrorCode::kForbidden, why});
  }
}

}  // namespace muster::webhook
