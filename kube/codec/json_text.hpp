#pragma once
// JSON as bytes: text written by hand, where building a tree first would be waste.

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::kube {

/// Appends `text` as a JSON string, quotes included. Bytes above 0x7F pass as they are.
void append_json_string(std::string& out, std::string_view text);

/// How many bytes from the start are well-formed UTF-8; all of them when the text is.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);

/// The first control character that JSON allows nowhere (all but tab, line feed and carriage
/// return); the size of the text when there is none.
[[nodiscard]] std::size_t find_control(std::string_view text);

/// What kinds of bytes a text has, told in one look, to spare the closer ones: most texts have
/// none.
struct ByteKinds {
  bool high = false;  ///< Above 0x7F.
  bool low = false;   ///< Below 0x20.
  bool backslash = false;
};

[[nodiscard]] ByteKinds kinds_in(std::string_view text);

}  // namespace muster::kube
