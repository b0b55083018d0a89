#pragma once
// Whole files, with errors that name them.

#include "base/result.hpp"

#include <string>

namespace muster::cli {

/// The bytes of a file, or of standard input for `-`. kNotFound when there is none; kTooLarge above
/// 256 MiB. The error starts with the path.
[[nodiscard]] Result<std::string> read_text(const std::string& path);

}  // namespace muster::cli
