#pragma once
// What a plain YAML scalar means, as kubectl reads it.

#include <optional>
#include <string>
#include <string_view>

namespace muster::kube {

/// The JSON text of a plain scalar that is not a string: `null`, `true`, `false` or a number.
/// Nothing when it is a string. The rules are those of the YAML library behind kubectl: YAML 1.1
/// booleans (`yes`, `on`, `y`), `_` inside numbers, `0644` and `0o644` octal, `0x`, `0b`; no
/// base-60 numbers. Infinities and NaN, which JSON cannot hold, are strings.
[[nodiscard]] std::optional<std::string> resolve_plain_scalar(std::string_view text);

/// True when `text` may stand unquoted and every common YAML reader takes it for this very string.
[[nodiscard]] bool safe_as_plain_scalar(std::string_view text);

}  // namespace muster::kube
