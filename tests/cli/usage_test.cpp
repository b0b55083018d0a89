#include "cli/usage.hpp"

#include "cli/certs_command.hpp"
#include "cli/decide.hpp"
#include "cli/serve.hpp"
#include "cli/version.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <map>

namespace muster::cli {
namespace {

struct Said {
  std::optional<int> code;
  std::string out;
  std::string error;
};

/// What the program says to these words, up to the command's own work.
Said parse(std::vector<std::string> words) {
  CLI::App app("a queue", "muster");
  app.require_subcommand(1);
  std::function<int()> action;
  register_serve(app, action, [](const ServeSettings&) { return 0; });
  register_decide(app, action);
  register_certs(app, action);
  register_version(app, action);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Said said;
  said.code = parse_command_line(app, std::move(words));
  if (!said.code) said.code = action();
  said.out = testing::internal::GetCapturedStdout();
  said.error = testing::internal::GetCapturedStderr();
  return said;
}

TEST(Usage, AMistakeIsNamedInOneLineWithTheHelpToRead) {
  const std::map<std::string, std::pair<std::vector<std::string>, std::string>> cases{
      {"a file without -f",
       {{"decide", "dump.yaml"},
        "muster: unexpected argument \"dump.yaml\": input is given with -f dump.yaml (see muster "
        "decide --help)\n"}},
      {"an unknown flag",
       {{"decide", "--foo"}, "muster: unexpected argument \"--foo\" (see muster decide --help)\n"}},
      {"an unknown flag of a nested command",
       {{"certs", "show", "--foo", "a.pem"},
        "muster: unexpected argument \"--foo\" (see muster certs show --help)\n"}},
      {"no input", {{"decide"}, "muster: --filename is required (see muster decide --help)\n"}},
      {"an unknown command",
       {{"sevre"}, "muster: unknown command \"sevre\" (see muster --help)\n"}},
      {"an unknown command, asked for its help",
       {{"config", "--help"}, "muster: unknown command \"config\" (see muster --help)\n"}},
      {"help for an unknown command",
       {{"help", "config"}, "muster: unknown command \"config\" (see muster --help)\n"}},
      {"an unknown flag before the command",
       {{"--foo"}, "muster: unexpected argument \"--foo\" (see muster --help)\n"}},
  };
  for (const auto& [name, each] : cases) {
    SCOPED_TRACE(name);
    const Said said = parse(each.first);
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(said.error, each.second);
    EXPECT_EQ(said.out, "");
  }
}

TEST(Usage, HelpIsPrintedWhereverItIsAskedFor) {
  const std::map<std::vector<std::string>, std::string> cases{
      {{"help"}, "decide"},
      {{"--help"}, "decide"},
      {{"help", "decide"}, "--now"},
      {{"decide", "--help"}, "--now"},
      {{"certs", "show", "--help"}, "PEM files"},
  };
  for (const auto& [words, text] : cases) {
    SCOPED_TRACE(words.front());
    const Said said = parse(words);
    EXPECT_EQ(said.code, 0);
    EXPECT_NE(said.out.find(text), std::string::npos) << said.out;
    EXPECT_EQ(said.error, "");
  }
}

}  // namespace
}  // namespace muster::cli
