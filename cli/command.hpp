#pragma once
// What all commands share: one clear line on standard error, and the exit codes of design 4.1.

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace muster::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;   ///< Refused, or found false.
inline constexpr int kExitBadInput = 2;  ///< Bad usage or input.

/// `text` without line breaks and other control characters: what came from outside stays one line.
[[nodiscard]] std::string one_line(std::string_view text);

/// `muster <command>: <message>` on standard error; the exit code for it.
[[nodiscard]] int refuse(std::string_view command, const Error& error);
void print_warning(std::string_view command, std::string_view warning);
void print_note(std::string_view command, std::string_view note);

/// Writes a report to standard output. kExitRefused, and a line, when it cannot be written whole.
[[nodiscard]] int print_report(std::string_view report);

}  // namespace muster::cli
