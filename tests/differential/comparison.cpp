#include "tests/differential/comparison.hpp"

#include "tests/differential/stray_leader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace muster::differential {
namespace {

constexpr const char* kOneOfSeveral = "same as one of the ends that chance gives the peer";
constexpr const char* kSameOrCrash = "same where the peer does not crash";

bool is_endless(const std::string& answer) {
  return answer.ends_with("endless");
}

const char* kind_of_agreement(const Stored& stored) {
  if (stored.answers.size() == 1) return kSame;
  // The peer is run again where it crashes, with queues that cannot make it.
  const bool crashes =
      std::find(stored.answers.begin(), stored.answers.end(), "crash") != stored.answers.end();
  return crashes ? kSameOrCrash : kOneOfSeveral;
}

std::string explanation_of(const World& world, const Stored& stored) {
  for (const auto* facts : {&quota_facts(), &node_facts()}) {
    for (const Fact& fact : *facts) {
      const Decided decided =
          decide_world(world.manifests, configuration_of(world, "kueue"), fact.switched_on);
      if (agrees(stored, decided.outcome)) return fact.name;
    }
  }
  return kUnexplained;
}

void print(const Tally& tally, const std::vector<Stored>& all) {
  std::cout << fmt::format("{} worlds, seeds {} to {}, {:.1f} % with a preemption\n", tally.worlds,
                           all.front().seed, all.back().seed, tally.share(tally.preempted));
  for (const auto& [name, count] : tally.by_end) {
    std::cout << fmt::format("  {:6.2f} %  {} ({})\n", tally.share(count), name, count);
  }
}

}  // namespace

std::vector<Stored> stored_answers(const std::string& file) {
  std::vector<Stored> all;
  std::ifstream answers(std::string(MUSTER_DIFFERENTIAL) + "/" + file);
  for (std::string line; std::getline(answers, line);) {
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

bool agrees(const Stored& stored, const std::string& outcome) {
  return std::any_of(stored.answers.begin(), stored.answers.end(), [&](const std::string& answer) {
    return answer == outcome || (is_endless(answer) && outcome == "endless");
  });
}

std::string both_ends(const Stored& stored, const Decided& decided) {
  return fmt::format("  muster: {}\n  peer:   {}\n", decided.outcome,
                     fmt::join(stored.answers, " | "));
}

const std::vector<Fact>& quota_facts() {
  static const std::vector<Fact> all = {
      {"the rank of a flavor is all that counts of it", {.rank_is_all = true}},
      {"scans of flavors go on over cycles", {.scans_go_on = true}},
      {"who is leaving counts as gone", {.leaving_is_gone = true}},
      {"shares are rounded", {.rounded_shares = true}},
  };
  return all;
}

const std::vector<Fact>& node_facts() {
  static const std::vector<Fact> all = {
      {"a plan whose nodes are taken is no plan", {.plan_is_final = true}},
      {"earlier pod sets are no pods", {.earlier_are_no_pods = true}},
      {"the leader of a group goes astray", {.place_with_leader = place_with_stray_leader}},
  };
  return all;
}

Tally compare(const std::vector<Stored>& all, std::size_t step,
              const std::function<World(std::uint64_t)>& world_of_seed,
              const std::set<std::uint64_t>& negative_room) {
  Tally tally;
  tally.by_end[kUnexplained] = 0;
  const bool verbose = std::getenv("MUSTER_DIFFERENCES") != nullptr;
  for (std::size_t i = 0; i < all.size(); i += step) {
    const Stored& stored = all[i];
    const World world = world_of_seed(stored.seed);
    if (fmt::format("{:08x}", fingerprint(world)) != stored.fingerprint) {
      ADD_FAILURE() << "seed " << stored.seed
                    << " is another world now: run tests/differential/run";
      return tally;
    }
    ++tally.worlds;
    if (stored.answers.front().find('!') != std::string::npos) ++tally.preempted;
    const Decided decided = decide_world(world.manifests, configuration_of(world, "kueue"));
    EXPECT_TRUE(decided.violations.empty())
        << "seed " << stored.seed << ": " << decided.violations.front();
    if (agrees(stored, decided.outcome)) {
      ++tally.by_end[kind_of_agreement(stored)];
      continue;
    }
    ++tally.different;
    std::string name = explanation_of(world, stored);
    if (name == kUnexplained && negative_room.contains(stored.seed)) name = kNegativeRoom;
    ++tally.by_end[name];
    if (verbose) std::cout << stored.seed << " " << name << "\n" << both_ends(stored, decided);
  }
  print(tally, all);
  return tally;
}

std::size_t compare_with_all_facts(const std::vector<Stored>& all, std::size_t step,
                                   const std::function<World(std::uint64_t)>& world_of_seed,
                                   const std::set<std::uint64_t>& negative_room) {
  constexpr engine::PeerFacts kAllFacts{.rank_is_all = true,
                                        .scans_go_on = true,
                                        .leaving_is_gone = true,
                                        .rounded_shares = true,
                                        .plan_is_final = true,
                                        .earlier_are_no_pods = true,
                                        .place_with_leader = place_with_stray_leader};
  std::size_t compared = 0;
  for (std::size_t i = 0; i < all.size(); i += step) {
    if (negative_room.contains(all[i].seed)) continue;
    const World world = world_of_seed(all[i].seed);
    const Decided decided =
        decide_world(world.manifests, configuration_of(world, "kueue"), kAllFacts);
    EXPECT_TRUE(agrees(all[i], decided.outcome)) << "seed " << all[i].seed << "\n"
                                                 << both_ends(all[i], decided);
    ++compared;
  }
  return compared;
}

}  // namespace muster::differential
