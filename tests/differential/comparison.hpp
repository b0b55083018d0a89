#pragma once
// Worlds beside the stored answers of the peer: which end the same, and for those that do not,
// which fact about the peer makes them.

#include "engine/options.hpp"
#include "tests/differential/outcome.hpp"
#include "tests/differential/worlds.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::differential {

inline constexpr const char* kSame = "same";
inline constexpr const char* kUnexplained = "unexplained";
inline constexpr const char* kNegativeRoom = "a node with too many pods is negative room";

/// What the peer said of one world; several answers where its own order is left to chance.
struct Stored {
  std::uint64_t seed = 0;
  std::string fingerprint;
  std::vector<std::string> answers;
};

/// Of a file beside this one, made by tests/differential/run.
[[nodiscard]] std::vector<Stored> stored_answers(const std::string& file);

[[nodiscard]] bool agrees(const Stored& stored, const std::string& outcome);

/// `muster: …` and `peer: …`, a line each.
[[nodiscard]] std::string both_ends(const Stored& stored, const Decided& decided);

/// Something that Kueue 0.17.0 does otherwise (docs/parity.md).
struct Fact {
  std::string name;
  engine::PeerFacts switched_on;
};
/// That shows without nodes, and that shows with them only.
[[nodiscard]] const std::vector<Fact>& quota_facts();
[[nodiscard]] const std::vector<Fact>& node_facts();

struct Tally {
  std::size_t worlds = 0;
  std::size_t preempted = 0;                  ///< Somebody was.
  std::map<std::string, std::size_t> by_end;  ///< By kSame, name of the fact, kUnexplained, ….
  [[nodiscard]] double share(std::size_t count) const {
    return 100.0 * static_cast<double>(count) / static_cast<double>(worlds);
  }
  std::size_t different = 0;  ///< Ended otherwise, whether or not a fact explains it.
};

/// Decides every `step`th world as Kueue would, once more for each fact where it ends otherwise,
/// and prints the table. Worlds that changed since they were stored, and states that break an
/// invariant, are failures of the test. MUSTER_DIFFERENCES in the environment prints each
/// difference.
/// Of the seeds in `negative_room` the peer's log says why they end otherwise, which no fact can
/// switch on (docs/parity.md, earlier_are_no_pods); they count as kNegativeRoom.
[[nodiscard]] Tally compare(const std::vector<Stored>& all, std::size_t step,
                            const std::function<World(std::uint64_t)>& world_of_seed,
                            const std::set<std::uint64_t>& negative_room = {});

/// The facts are what the peer does, and not only something that happens to give the same end: all
/// of them together leave none of these worlds different but those with `negative_room`. The number
/// of worlds compared.
[[nodiscard]] std::size_t compare_with_all_facts(
    const std::vector<Stored>& all, std::size_t step,
    const std::function<World(std::uint64_t)>& world_of_seed,
    const std::set<std::uint64_t>& negative_room = {});

}  // namespace muster::differential
