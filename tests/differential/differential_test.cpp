// The engine beside Kueue 0.17.0 over small random worlds. The peer's answers are stored
// (answers.txt, made by tests/differential/run), so that no Go program is needed here.

#include "tests/differential/outcome.hpp"
#include "tests/differential/worlds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace muster::differential {
namespace {

/// What the peer said of one world; several answers where its own order is left to chance.
struct Stored {
  std::uint64_t seed = 0;
  std::string fingerprint;
  std::vector<std::string> answers;
};

std::vector<Stored> stored_answers() {
  std::vector<Stored> all;
  std::ifstream file(std::string(MUSTER_DIFFERENTIAL) + "/answers.txt");
  for (std::string line; std::getline(file, line);) {
    Stored& stored = all.emplace_back();
    std::istringstream words(line);
    words >> stored.seed >> stored.fingerprint;
    std::string rest;
    std::getline(words, rest);
    rest.erase(0, 1);
    for (std::size_t at = 0;;) {
      const std::size_t end = rest.find(" | ", at);
      stored.answers.push_back(rest.substr(at, end - at));
      if (end == std::string::npos) break;
      at = end + 3;
    }
  }
  return all;
}

bool is_endless(const std::string& answer) {
  return answer.ends_with("endless");
}

bool agrees(const Stored& stored, const std::string& outcome) {
  return std::any_of(stored.answers.begin(), stored.answers.end(), [&](const std::string& answer) {
    return answer == outcome || (is_endless(answer) && outcome == "endless");
  });
}

/// What the two may differ in; `plain` where there is nothing of the kind.
std::string kind_of(const World& world, const Stored& stored) {
  if (stored.answers.size() > 1) return "the peer leaves it to chance";
  if (stored.answers.front() == "crash") return "the peer crashes";
  if (is_endless(stored.answers.front())) return "the peer never settles";
  if (world.fair_sharing) return "fair sharing";
  if (world.partial_admission) return "partial admission";
  if (world.two_pod_sets) return "several pod sets";
  return "plain";
}

TEST(Differential, WorldsEndAsWithThePeer) {
  const std::vector<Stored> all = stored_answers();
  EXPECT_GE(all.size(), 5000U);
  std::size_t preempted = 0;
  std::map<std::string, std::size_t> by_kind;
  const bool verbose = std::getenv("MUSTER_DIFFERENCES") != nullptr;
  for (const Stored& stored : all) {
    const World world = world_of(stored.seed);
    ASSERT_EQ(fmt::format("{:08x}", fingerprint(world)), stored.fingerprint)
        << "seed " << stored.seed << " is another world now: run tests/differential/run";
    if (stored.answers.front().find('!') != std::string::npos) ++preempted;
    const Decided decided = decide_world(world.manifests, configuration_of(world, "kueue"));
    EXPECT_TRUE(decided.violations.empty())
        << "seed " << stored.seed << ": " << decided.violations.front();
    if (agrees(stored, decided.outcome)) {
      ++by_kind["same"];
      continue;
    }
    const std::string name = kind_of(world, stored);
    ++by_kind[name];
    if (verbose) {
      std::cout << stored.seed << " " << name << "\n  muster: " << decided.outcome
                << "\n  peer:   " << fmt::format("{}", fmt::join(stored.answers, " | ")) << "\n";
    }
  }
  const auto share = [&](std::size_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(all.size());
  };
  std::cout << fmt::format("{} worlds, seeds {} to {}, {:.1f} % with a preemption\n", all.size(),
                           all.front().seed, all.back().seed, share(preempted));
  for (const auto& [name, count] : by_kind) {
    std::cout << fmt::format("  {:5.1f} %  {} ({})\n", share(count), name, count);
  }
  EXPECT_GE(share(preempted), 30.0);
  EXPECT_GE(share(by_kind["same"]), 99.0);
}

}  // namespace
}  // namespace muster::differential
