#pragma once
// Command lines: help wherever it is asked for, and one line that names the mistake.

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muster::cli {

/// Parses the words behind the program's name; `help decide` is `decide --help`. The exit code
/// where that is all there is to do: help was printed, or what is wrong was said on standard error.
[[nodiscard]] std::optional<int> parse_command_line(CLI::App& app, std::vector<std::string> words);

}  // namespace muster::cli
