#include "cli/usage.hpp"

#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace muster::cli {
namespace {

bool has_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->get_name() == name; });
}

/// The command that was parsed, and its name as it is typed: `muster certs show`.
const CLI::App& parsed_command(const CLI::App& app, std::string& name) {
  const CLI::App* command = &app;
  name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return *command;
}

/// `decide dump.yaml` is what many try first.
std::string unexpected(const CLI::App& command, const std::string& word) {
  std::string text = fmt::format("unexpected argument \"{}\"", word);
  const bool reads_files = command.get_option_no_throw("--filename") != nullptr;
  if (reads_files && !word.starts_with('-'))
    text += fmt::format(": input is given with -f {}", word);
  return text;
}

bool is(const CLI::ParseError& error, CLI::ExitCodes code) {
  return error.get_exit_code() == static_cast<int>(code);
}

int bad_usage(const std::string& message, const std::string& command) {
  fmt::print(stderr, "muster: {} (see {} --help)\n", one_line(message), one_line(command));
  return kExitBadInput;
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& app, std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  // Before the parser sees it: with --help behind it, it would print the help and be content.
  if (!words.empty() && !words.front().starts_with('-') && !has_command(app, words.front())) {
    return bad_usage(fmt::format("unknown command \"{}\"", words.front()), app.get_name());
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // Help, on standard output.
    std::string name;
    const CLI::App& command = parsed_command(app, name);
    // Of an argument that nobody expected and one that is missing, the first is the mistake, and
    // the parser tells of the second.
    const std::vector<std::string> extra = command.remaining();
    const bool is_extra =
        is(error, CLI::ExitCodes::ExtrasError) || is(error, CLI::ExitCodes::RequiredError);
    return bad_usage(is_extra && !extra.empty() ? unexpected(command, extra.front()) : error.what(),
                     name);
  }
}

}  // namespace muster::cli
