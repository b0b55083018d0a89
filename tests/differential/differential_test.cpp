// The engine beside Kueue 0.17.0 over small random worlds. The peer's answers are stored
// (answers.txt, made by tests/differential/run), so that no Go program is needed here.

#include "tests/differential/outcome.hpp"
#include "tests/differential/worlds.hpp"
#include "tests/rounds.hpp"

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

constexpr const char* kSame = "same";
constexpr const char* kOneOfSeveral = "same as one of the ends that chance gives the peer";
constexpr const char* kSameOrCrash = "same where the peer does not crash";
constexpr const char* kUnexplained = "unexplained";

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

const char* kind_of_agreement(const Stored& stored) {
  if (stored.answers.size() == 1) return kSame;
  // The peer is run again where it crashes, with queues that cannot make it.
  const bool crashes =
      std::find(stored.answers.begin(), stored.answers.end(), "crash") != stored.answers.end();
  return crashes ? kSameOrCrash : kOneOfSeveral;
}

/// A difference is explained when one fact about the peer (docs/parity.md) removes it.
struct Fact {
  std::string name;
  engine::PeerFacts switched_on;
};
const std::vector<Fact>& facts() {
  static const std::vector<Fact> all = {
      {"the rank of a flavor is all that counts of it", {.rank_is_all = true}},
      {"scans of flavors go on over cycles", {.scans_go_on = true}},
      {"who is leaving counts as gone", {.leaving_is_gone = true}},
      {"shares are rounded", {.rounded_shares = true}},
  };
  return all;
}

constexpr engine::PeerFacts kAllFacts{
    .rank_is_all = true, .scans_go_on = true, .leaving_is_gone = true, .rounded_shares = true};

std::string explanation_of(const World& world, const Stored& stored) {
  for (const Fact& fact : facts()) {
    const Decided decided =
        decide_world(world.manifests, configuration_of(world, "kueue"), fact.switched_on);
    if (agrees(stored, decided.outcome)) return fact.name;
  }
  return kUnexplained;
}

TEST(Differential, WorldsEndAsWithThePeer) {
  const std::vector<Stored> all = stored_answers();
  EXPECT_GE(all.size(), 5000U);
  std::size_t preempted = 0;
  std::map<std::string, std::size_t> by_end{{kUnexplained, 0}};
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
      ++by_end[kind_of_agreement(stored)];
      continue;
    }
    const std::string name = explanation_of(world, stored);
    ++by_end[name];
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
  for (const auto& [name, count] : by_end) {
    std::cout << fmt::format("  {:6.2f} %  {} ({})\n", share(count), name, count);
  }
  EXPECT_GE(share(preempted), 30.0);
  EXPECT_GE(share(by_end[kSame]), 99.0);
  EXPECT_EQ(by_end[kUnexplained], 0U);
  for (const Fact& fact : facts()) EXPECT_GE(by_end[fact.name], 1U) << fact.name;
}

// The facts are what the peer does, and not only something that happens to give the same end: all
// of them together leave no world different.
TEST(Differential, WithAllFactsWorldsEndAsWithThePeer) {
  const std::size_t step = test::is_full_run() ? 1 : 9;
  const std::vector<Stored> all = stored_answers();
  std::size_t compared = 0;
  for (std::size_t i = 0; i < all.size(); i += step) {
    const World world = world_of(all[i].seed);
    const Decided decided =
        decide_world(world.manifests, configuration_of(world, "kueue"), kAllFacts);
    EXPECT_TRUE(agrees(all[i], decided.outcome))
        << "seed " << all[i].seed << "\n  muster: " << decided.outcome
        << "\n  peer:   " << fmt::format("{}", fmt::join(all[i].answers, " | "));
    ++compared;
  }
  EXPECT_GE(compared, 600U);
}

}  // namespace
}  // namespace muster::differential
