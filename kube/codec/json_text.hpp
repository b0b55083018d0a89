#pragma once
// JSON as bytes: text written by hand, where building a tree first would be waste.

#include <string>
#include <string_view>

namespace muster::kube {

/// Appends `text` as a JSON string, quotes included. Bytes above 0x7F pass as they are.
void append_json_string(std::string& out, std::string_view text);

/// How many bytes from the start are well-formed UTF-8; all of them when the text is.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);

}  // namespace muster::kube
