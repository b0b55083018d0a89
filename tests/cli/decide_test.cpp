// decide over files and directories, and over everything that could break it. What it decides is in
// tests/scenarios.

#include "cli/decide.hpp"

#include "kube/codec/yaml.hpp"
#include "tests/cli/fragment.hpp"
#include "tests/cli/scenarios.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("muster-decide-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string job(const std::string& name) {
  return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name +
         ", namespace: team, labels: {kueue.x-k8s.io/queue-name: main}}\nspec: {template: {spec: "
         "{containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]}}}\n";
}

std::string queue(int gpus) {
  return R"(apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: )" +
         std::to_string(gpus) + R"(}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: q}
)";
}

std::vector<std::string> admitted(const std::string& json) {
  std::vector<std::string> names;
  const kube::Json decisions = kube::Json::parse(json).value_or(kube::Json()).get("decisions");
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (decisions.at(i).get("type").string_or("") != "Admitted") continue;
    names.emplace_back(decisions.at(i).get("workload").string_or(""));
  }
  return names;
}

Result<DecideResult> decide_paths(const std::vector<std::string>& paths,
                                  ReportFormat format = ReportFormat::kJson) {
  auto manifests = read_manifests(paths);
  if (!manifests) return fail(manifests.error());
  DecideOptions options;
  options.format = format;
  return decide(*std::move(manifests), options);
}

TEST(DecideFiles, DirectoriesAreReadInByteOrderAndNotBelow) {
  const Folder folder;
  // Upper case before lower, 10 before 9: bytes, not words or numbers.
  folder.write("b.yaml", job("fourth"));
  folder.write("Z.yml", job("third"));
  folder.write("9.yaml", job("second"));
  folder.write("10.json", kube::parse_yaml(job("first")).value().front().dump());
  folder.write("notes.txt", "no manifest");
  folder.write("below/a.yaml", job("below"));
  const std::string queues = folder.write("queues.yaml", queue(8));
  const auto result = decide_paths({folder.path()});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(admitted(result->report),
            (std::vector<std::string>{"team/first", "team/second", "team/third", "team/fourth"}));
}

TEST(DecideFiles, TheOrderOfPathsIsTheOrderOfObjects) {
  const Folder folder;
  const std::string queues = folder.write("q.yaml", queue(1));
  const std::string one = folder.write("1.yaml", job("one"));
  const std::string two = folder.write("2.yaml", job("two"));
  EXPECT_EQ(admitted(decide_paths({two, one, queues})->report),
            (std::vector<std::string>{"team/two"}));
  EXPECT_EQ(admitted(decide_paths({queues, one, two})->report),
            (std::vector<std::string>{"team/one"}));
}

TEST(DecideFiles, WhatIsNotThereIsNamed) {
  const Folder folder;
  for (const std::string& path : {folder.path() + "/missing.yaml", folder.path()}) {
    const auto result = decide_paths({path});
    ASSERT_FALSE(result.has_value());
    EXPECT_TRUE(result.error().message.starts_with(path + ": ")) << result.error().message;
  }
  const std::string file = folder.write("broken.yaml", "a: [1, 2");
  const auto broken = decide_paths({file});
  ASSERT_FALSE(broken.has_value());
  EXPECT_TRUE(broken.error().message.starts_with(file + ": document 1: "))
      << broken.error().message;
}

TEST(DecideFiles, TheShippedExamplesAreUnderstood) {
  for (const char* name : {"kubeflow-teams", "research-fleet"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string(MUSTER_EXAMPLES) + "/" + name;
    const auto result = decide_paths({folder});
    ASSERT_TRUE(result.has_value()) << result.error().message;
    const auto report = kube::Json::parse(result->report);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(test::contract_breach(*report), "");
    EXPECT_GT(report->get("workloads").size(), 0U);
    for (const std::string& warning : result->warnings) {
      EXPECT_EQ(warning.find("no such field"), std::string::npos) << warning;
    }
    EXPECT_FALSE(decide_paths({folder}, ReportFormat::kTable)->report.empty());
  }
}

TEST(DecideFiles, TheFakeNodesAreThoseOfTheExample) {
  const std::string examples = MUSTER_EXAMPLES;
  const auto result = decide_paths({examples + "/research-fleet", examples + "/fake-nodes.yaml"});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_NE(result->report.find("reserved-0"), std::string::npos) << result->report;
  EXPECT_TRUE(result->notes.empty());
}

TEST(DecideTable, TellsDecisionsNeedsAndUse) {
  const Folder folder;
  const std::string file =
      folder.write("all.yaml", queue(1) + "---\n" + job("one") + "---\n" + job("two"));
  const auto result = decide_paths({file}, ReportFormat::kTable);
  ASSERT_TRUE(result.has_value());
  for (const char* text :
       {"Admitted", "team/one", "team/two", "WaitingForQuota", "1 nvidia.com/gpu in ClusterQueue q",
        "1 admitted", "1 pending", "h100"}) {
    EXPECT_NE(result->report.find(text), std::string::npos) << text << "\n" << result->report;
  }
}

/// Changes a text in one of the ways that text gets broken.
class Damage {
 public:
  /// The seed is fixed: a failure can be repeated.
  std::string apply(std::string text) {
    for (std::size_t changes = 1 + below(2); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = below(text.size());
      switch (below(3)) {
        case 0:
          replace_value(text, at);
          break;
        case 1:
          text.erase(at, below(40));
          break;
        default:
          text[at] = static_cast<char>(below(8) == 0 ? below(256) : ' ' + below(95));
      }
    }
    return text;
  }
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

 private:
  void replace_value(std::string& text, std::size_t from) {
    static const std::vector<std::string> values{"null",
                                                 "-1",
                                                 "0",
                                                 "9223372036854775807",
                                                 "99999999999999999999",
                                                 "1e99",
                                                 "[]",
                                                 "{}",
                                                 "true",
                                                 "\"\"",
                                                 "a/b",
                                                 "[[[]]]",
                                                 "!!binary a",
                                                 "&a x",
                                                 "*a",
                                                 "1Ki",
                                                 "500m",
                                                 "-8",
                                                 "~",
                                                 "2026-01-01T00:00:00Z"};
    const std::size_t colon = text.find(": ", from);
    if (colon == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_of(",}\n", colon), text.size());
    text.replace(colon + 2, end - std::min(colon + 2, end), values[below(values.size())]);
  }

  std::mt19937 random_{20261129};
};

// Whatever a scenario's text is turned into, decide says yes or no and does not fall over.
TEST(DecideBroken, DamagedInputIsRefusedOrDecided) {
  std::vector<test::Scenario> scenarios;
  for (const std::string& file : test::scenario_files()) {
    scenarios.push_back(test::load_scenario(file));
    if (scenarios.back().texts.empty()) scenarios.pop_back();
  }
  Damage damage;
  int decided = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<NamedText> texts = scenarios[damage.below(scenarios.size())].texts;
    texts.back().text = damage.apply(texts.back().text);
    auto manifests = parse_manifests(texts);
    if (!manifests) {
      EXPECT_FALSE(manifests.error().message.empty());
      continue;
    }
    const auto result = decide(*std::move(manifests), {.config = {}, .now = {}, .format = {}});
    if (!result) {
      EXPECT_NE(result.error().code, ErrorCode::kInternal) << result.error().message << "\n"
                                                           << texts.back().text;
      continue;
    }
    ++decided;
  }
  EXPECT_GT(decided, 80);
}

}  // namespace
}  // namespace muster::cli
