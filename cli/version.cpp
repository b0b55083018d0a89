#include "cli/version.hpp"

#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace muster::cli {

const char* version() {
  return MUSTER_VERSION;
}

void register_version(CLI::App& app, std::function<int()>& action) {
  app.set_version_flag("--version", fmt::format("muster {}", version()));
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->callback(
      [&action] { action = [] { return print_report(fmt::format("muster {}\n", version())); }; });
}

}  // namespace muster::cli
