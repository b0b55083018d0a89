// Every file of tests/scenarios is one case: a header document that says what is expected of
// `muster decide`, and the manifests it reads. tests/scenarios/README.md has the form.

#include "cli/decide.hpp"
#include "tests/cli/fragment.hpp"
#include "tests/cli/scenarios.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

using kube::Json;
using test::Scenario;

Result<DecideResult> decide_texts(const std::vector<NamedText>& texts, const Json& header,
                                  ReportFormat format) {
  DecideOptions options;
  options.format = format;
  options.run.check_invariants = true;
  if (const Json config = header.get("config"); config.is_string()) {
    auto parsed = parse_config(config.string_or(""));
    if (!parsed) return fail(parsed.error());
    options.config = *std::move(parsed);
  }
  if (const Json now = header.get("now"); now.is_string()) {
    options.now = parse_rfc3339(now.string_or("")).value();
  }
  auto manifests = parse_manifests(texts);
  if (!manifests) return fail(manifests.error());
  auto result = decide(*std::move(manifests), options);
  if (result) {
    EXPECT_TRUE(result->violations.empty()) << result->violations.front();
  }
  return result;
}

Json report_of(const std::vector<NamedText>& texts, const Json& header) {
  const auto result = decide_texts(texts, header, ReportFormat::kJson);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  const Json report = Json::parse(result->report).value_or(Json());
  EXPECT_EQ(test::contract_breach(report), "") << result->report;
  return report;
}

std::string yaml_of(const std::vector<NamedText>& texts, const Json& header) {
  const auto result = decide_texts(texts, header, ReportFormat::kYaml);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return result ? result->report : "";
}

void expect_mentions(const Json& wanted, const std::string& text) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NE(text.find(wanted.at(i).string_or("")), std::string::npos)
        << "no " << wanted.at(i).dump() << " in: " << text;
  }
}

void expect_said(const Json& wanted, const std::vector<std::string>& lines) {
  std::string said;
  for (const std::string& line : lines) said += line + "\n";
  expect_mentions(wanted, said);
  EXPECT_EQ(said.empty(), wanted.size() == 0) << said;
}

/// What is decided stays decided: the same queues are used the same way, and nothing happens.
void expect_settled(const Json& before, const std::string& yaml, const Json& header) {
  const Json after = report_of({{"after.yaml", yaml}}, header);
  EXPECT_EQ(after.get("cycles").int_or(0), 1);
  const Json decisions = after.get("decisions");
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    EXPECT_EQ(decisions.at(i).get("type").string_or(""), "Pending")
        << "read again: " << decisions.at(i).dump();
  }
  EXPECT_EQ(after.get("clusterQueues").pretty(), before.get("clusterQueues").pretty());
  EXPECT_EQ(after.get("workloads").size(), before.get("workloads").size());
  // A Job's work is called by its Workload's name from now on, also in messages; then nothing
  // moves.
  const std::string again = yaml_of({{"after.yaml", yaml}}, header);
  EXPECT_EQ(yaml_of({{"after.yaml", again}}, header), again);
}

class ScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, HoldsAndSettles) {
  const Scenario scenario = test::load_scenario(GetParam());
  const Json& header = scenario.header;
  SCOPED_TRACE(std::string(header.get("says").string_or("")));
  ASSERT_FALSE(header.get("says").string_or("").empty()) << "say what the case is about";

  const auto result = decide_texts(scenario.texts, header, ReportFormat::kJson);
  if (const Json wanted = header.get("error"); wanted.present()) {
    ASSERT_FALSE(result.has_value()) << result->report;
    expect_mentions(wanted, result.error().message);
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
    return;
  }
  const Json report = report_of(scenario.texts, header);
  ASSERT_TRUE(report.present());
  const std::string found = test::mismatch(header.get("expect"), report, "report");
  EXPECT_EQ(found, "") << report.pretty();
  expect_said(header.get("warnings"), result->warnings);
  expect_said(header.get("notes"), result->notes);

  EXPECT_EQ(result->report, decide_texts(scenario.texts, header, ReportFormat::kJson)->report);
  const std::string yaml = yaml_of(scenario.texts, header);
  expect_settled(report, yaml, header);

  if (const Json then = header.get("then"); then.is_string()) {
    const Json next =
        report_of({{"after.yaml", yaml}, {"then.yaml", std::string(then.string_or(""))}}, header);
    const std::string later = test::mismatch(header.get("expectThen"), next, "then");
    EXPECT_EQ(later, "") << next.pretty();
  }
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioTest, testing::ValuesIn(test::scenario_files()), case_name);

TEST(Scenarios, AreThere) {
  EXPECT_GE(test::scenario_files().size(), 150U);
}

}  // namespace
}  // namespace muster::cli
