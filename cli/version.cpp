#include "cli/version.hpp"

#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace muster::cli {

const char* version() {
  return MUSTER_VERSION;
}

void register_version(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->callback(
      [&action] { action = [] { return print_report(fmt::format("muster {}\n", version())); }; });
}

}  // namespace muster::cli
