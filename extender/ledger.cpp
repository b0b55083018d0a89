#include "extender/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>

namespace muster::extender {
namespace {

using engine::NodeView;
using engine::Snapshot;

constexpr std::size_t kBitsPerWord = 64;

bool is_visible_on(const NodeView& node, const Uid& uid) {
  return std::any_of(node.pods.begin(), node.pods.end(),
                     [&](const engine::PodView& pod) { return pod.use->uid == uid; });
}

/// Resource versions are opaque but for equality; the API server's are numbers that grow, and only
/// where both are is one taken for newer.
bool is_newer(const std::string& version, const std::string& than) {
  const auto number = [](const std::string& text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const auto a = number(version);
  const auto b = number(than);
  return a && b ? *a > *b : version != than;
}

}  // namespace

FoundNode NodeFinder::at(std::size_t position) const {
  const std::size_t chunk = position / Snapshot::kChunkNodes;
  const std::size_t offset = position % Snapshot::kChunkNodes;
  if (chunk >= snapshot_.node_chunks.size() || !snapshot_.node_chunks[chunk] ||
      offset >= snapshot_.node_chunks[chunk]->nodes.size()) {
    return {};
  }
  const engine::NodeChunk& found = *snapshot_.node_chunks[chunk];
  return FoundNode{&found.nodes[offset], position, &found.table, offset};
}

FoundNode NodeFinder::find(std::string_view name) {
  if (!snapshot_.node_index) return {};
  const engine::NodeLookup& index = *snapshot_.node_index;
  // A removed node keeps its place for a while, but is not usable: only the index can tell then.
  if (const FoundNode next = at(index.follower(last_));
      next.node != nullptr && next.table->usable(next.row) && next.table->name(next.row) == name) {
    last_ = next.position;
    return next;
  }
  const auto found = index.find(name);
  if (!found) return {};
  index.set_follower(last_, *found);
  last_ = *found;
  return at(*found);
}

AnsweredNodes::AnsweredNodes(std::shared_ptr<const engine::NodeLookup> index)
    : index_(std::move(index)) {}

AnsweredNodes AnsweredNodes::everything() {
  AnsweredNodes nodes(nullptr);
  nodes.everything_ = true;
  return nodes;
}

void AnsweredNodes::add_position(std::size_t position) {
  const std::size_t word = position / kBitsPerWord;
  if (word >= bits_.size()) bits_.resize(word + 1);
  bits_[word] |= std::uint64_t{1} << (position % kBitsPerWord);
}

void AnsweredNodes::add_unknown(std::string_view name) {
  unknown_.emplace_back(name);
}

bool AnsweredNodes::has_bit(std::size_t position) const {
  const std::size_t word = position / kBitsPerWord;
  return word < bits_.size() && ((bits_[word] >> (position % kBitsPerWord)) & 1U) != 0;
}

bool AnsweredNodes::contains(std::string_view name) const {
  if (everything_) return true;
  if (std::find(unknown_.begin(), unknown_.end(), name) != unknown_.end()) return true;
  if (!index_) return false;
  const auto found = index_->find(name);
  return found && has_bit(*found);
}

bool AnsweredNodes::contains(const Snapshot& snapshot, std::size_t position,
                             const NodeName& name) const {
  if (everything_) return true;
  if (index_ != snapshot.node_index) return contains(name.value());
  return has_bit(position);
}

bool AnsweredNodes::any_of(const Snapshot& snapshot,
                           const std::function<bool(const FoundNode&)>& predicate) const {
  NodeFinder finder(snapshot);
  const auto holds = [&](const FoundNode& found) {
    return found.node != nullptr && predicate(found);
  };
  if (index_ != snapshot.node_index) {  // Nodes came or went: positions may have moved.
    const std::vector<NodeName> all = names();
    return std::any_of(all.begin(), all.end(),
                       [&](const NodeName& name) { return holds(finder.find(name.value())); });
  }
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(left));
      if (holds(finder.at((word * kBitsPerWord) + bit))) return true;
    }
  }
  return false;
}

bool AnsweredNodes::empty() const {
  return !everything_ && unknown_.empty() &&
         std::all_of(bits_.begin(), bits_.end(), [](std::uint64_t word) { return word == 0; });
}

std::vector<NodeName> AnsweredNodes::names() const {
  std::vector<NodeName> names;
  if (index_) {
    index_->for_each([&](std::string_view name, std::size_t position) {
      if (has_bit(position)) names.emplace_back(std::string(name));
    });
  }
  for (const std::string& name : unknown_) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string scheduling_verdict(const kube::Pod& pod) {
  const kube::Condition* const condition = kube::find_condition(pod.conditions, "PodScheduled");
  if (condition == nullptr) return {};
  return fmt::format("{}|{}|{}|{}", condition->status, condition->reason,
                     condition->last_transition ? condition->last_transition->us : 0,
                     condition->message);
}

void Ledger::record(ForeignAnswer answer) {
  const std::lock_guard lock(mutex_);
  if (!answer.nodes.empty()) erase_refusal(answer.uid);
  if (answer.nodes.empty()) {
    erase_answer(answer.uid);
    return;
  }
  insert(std::make_shared<const ForeignAnswer>(std::move(answer)));
}

void Ledger::retract(const Uid& uid) {
  const std::lock_guard lock(mutex_);
  erase_answer(uid);
}

void Ledger::assume_answered(const Uid& uid, Resources requests, Instant until) {
  ForeignAnswer answer{.uid = uid,
                       .requests = std::move(requests),
                       .nodes = AnsweredNodes::everything(),
                       .generation = 0,
                       .at = {},
                       .resource_version = {},
                       .verdict = {},
                       .expires = until};
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(uid);
  if (found != answers_.end() && !found->second.answer->expires) return;
  insert(std::make_shared<const ForeignAnswer>(std::move(answer)));
}

void Ledger::insert(std::shared_ptr<const ForeignAnswer> answer) {
  const Uid uid = answer->uid;
  erase_answer(uid);
  if (limits_.answers == 0 || gone_.contains(uid)) return;
  while (answers_.size() >= limits_.answers) {
    const Uid oldest = answers_by_age_.begin()->second;
    erase_answer(oldest);
    ++dropped_;
  }
  const std::uint64_t sequence = next_sequence_++;
  answers_by_age_.emplace(sequence, uid);
  answers_.emplace(uid, Entry{std::move(answer), std::nullopt, sequence});
  ++answers_version_;
}

void Ledger::erase_answer(const Uid& uid) {
  const auto found = answers_.find(uid);
  if (found == answers_.end()) return;
  answers_by_age_.erase(found->second.sequence);
  answers_.erase(found);
  ++answers_version_;
}

void Ledger::observe(const kube::Pod& pod, std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  const Uid& uid = pod.meta.uid;
  if (pod.terminal()) return erase_all(uid);
  const auto found = answers_.find(uid);
  if (!pod.spec.node_name.empty()) {
    // A call that still looks at an older snapshot sees the pod nowhere yet, so the entries stay
    // until a newer one was looked at.
    if (found != answers_.end() && !found->second.bound_from) {
      found->second.bound_from = generation;
      ++answers_version_;
    }
    erase_refusal(uid);
    // It may sit elsewhere than where we sent it: that is where it will be seen.
    if (const auto reserved = reservations_.find(uid); reserved != reservations_.end()) {
      reserved_.at(reserved->second.group).at(uid).node = pod.spec.node_name;
    }
    return;
  }
  if (found == answers_.end()) return;
  const kube::Condition* const condition = kube::find_condition(pod.conditions, "PodScheduled");
  if (condition == nullptr || condition->status != "False") return;
  // An event of an earlier failure may arrive after the answer to the next attempt, and any other
  // change of the pod shows the old failure again: only a new verdict in a newer version counts.
  const ForeignAnswer& answer = *found->second.answer;
  if (answer.expires) return;
  if (is_newer(pod.meta.resource_version, answer.resource_version) &&
      scheduling_verdict(pod) != answer.verdict) {
    erase_answer(uid);
  }
}

void Ledger::forget(const Uid& uid) {
  const std::lock_guard lock(mutex_);
  erase_all(uid);
}

void Ledger::erase_all(const Uid& uid) {
  erase_answer(uid);
  erase_reservation(uid);
  erase_refusal(uid);
  if (!gone_.insert(uid).second) return;
  gone_by_age_.push_back(uid);
  if (gone_by_age_.size() <= limits_.gone) return;
  gone_.erase(gone_by_age_.front());
  gone_by_age_.pop_front();
}

std::vector<std::shared_ptr<const ForeignAnswer>> Ledger::open_answers(const Uid& except,
                                                                       std::uint64_t generation,
                                                                       Instant now) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const ForeignAnswer>> open;
  std::vector<Uid> over;
  for (const auto& [sequence, uid] : answers_by_age_) {
    const Entry& entry = answers_.at(uid);
    if (entry.is_over(generation, now)) {
      over.push_back(uid);
    } else if (uid != except) {
      open.push_back(entry.answer);
    }
  }
  for (const Uid& uid : over) erase_answer(uid);
  return open;
}

std::vector<Uid> Ledger::blocking(const std::map<NodeName, ResourceList>& planned,
                                  std::uint64_t generation, const Snapshot& snapshot,
                                  Instant now) const {
  std::vector<std::shared_ptr<const ForeignAnswer>> older;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [sequence, uid] : answers_by_age_) {
      const Entry& entry = answers_.at(uid);
      if (entry.answer->generation >= generation) continue;
      if (entry.is_over(snapshot.generation, now)) continue;
      older.push_back(entry.answer);
    }
  }
  std::vector<Uid> blockers;
  if (older.empty() || !snapshot.resources) return blockers;
  for (const auto& [name, plan] : planned) {
    const NodeView* const node = snapshot.find_node(name.value());
    if (node == nullptr) continue;  // Nothing can be bound there.
    Resources room = node->unplanned_room();
    if (snapshot.generation < generation) {
      room -= Resources::from_list_known(plan, *snapshot.resources);
    }
    // Any of them may have landed here, so all of them must fit.
    Resources together;
    std::vector<Uid> here;
    for (const auto& answer : older) {
      if (!answer->nodes.contains(name.value()) || is_visible_on(*node, answer->uid)) continue;
      together += answer->requests;
      here.push_back(answer->uid);
    }
    if (!together.fits_in(room)) blockers.insert(blockers.end(), here.begin(), here.end());
  }
  std::sort(blockers.begin(), blockers.end());
  blockers.erase(std::unique(blockers.begin(), blockers.end()), blockers.end());
  return blockers;
}

std::vector<std::shared_ptr<const ForeignAnswer>> Ledger::landed_unseen(const NodeName& node,
                                                                        const Snapshot& snapshot,
                                                                        Instant now) const {
  std::vector<std::shared_ptr<const ForeignAnswer>> landed;
  const NodeView* const view = snapshot.find_node(node.value());
  if (view == nullptr) return landed;
  const Resources room = view->unplanned_room();
  if (room.any_negative()) return landed;
  std::vector<std::shared_ptr<const ForeignAnswer>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [sequence, uid] : answers_by_age_) {
      const Entry& entry = answers_.at(uid);
      // Bound, it is seen where it is as soon as a snapshot shows it.
      if (!entry.bound_from && !entry.is_over(snapshot.generation, now)) {
        open.push_back(entry.answer);
      }
    }
  }
  Resources together;
  for (const auto& answer : open) {
    if (!answer->nodes.contains(node.value()) || is_visible_on(*view, answer->uid)) continue;
    if (!answer->requests.fits_in(room)) return {answer};
    together += answer->requests;
    landed.push_back(answer);
    if (!together.fits_in(room)) return landed;
  }
  return {};
}

bool Ledger::is_open(const ForeignAnswer& answer) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(answer.uid);
  return found != answers_.end() && found->second.answer.get() == &answer &&
         !found->second.bound_from;
}

std::vector<NodeName> Ledger::nodes_in_doubt() const {
  std::vector<std::shared_ptr<const ForeignAnswer>> open;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    if (doubt_version_ == answers_version_) return doubt_;
    version = answers_version_;
    for (const auto& [uid, entry] : answers_) {
      if (!entry.bound_from && !entry.answer->nodes.is_everything()) open.push_back(entry.answer);
    }
  }
  std::vector<NodeName> nodes;  // Sorting thousands of names is nothing to hold a lock for.
  for (const auto& answer : open) {
    const std::vector<NodeName> names = answer->nodes.names();
    nodes.insert(nodes.end(), names.begin(), names.end());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const std::lock_guard lock(mutex_);
  doubt_ = nodes;
  doubt_version_ = version;
  return nodes;
}

std::optional<NodeName> Ledger::reserve_slot(const SlotRequest& request) {
  const std::lock_guard lock(mutex_);
  if (gone_.contains(request.pod)) return std::nullopt;
  const auto node = choose_slot(request);
  erase_reservation(request.pod);
  if (node) {
    erase_refusal(request.pod);
    set_reservation(request.pod, Group{request.owner, request.pod_set}, Slot{*node, request.rank});
  }
  return node;
}

std::optional<NodeName> Ledger::choose_slot(const SlotRequest& request) {
  std::map<NodeName, std::int64_t> given;  // To others.
  std::optional<NodeName> own;
  bool rank_is_given = false;
  std::vector<Uid> bound;
  const auto group = reserved_.find(Group{request.owner, request.pod_set});
  if (group != reserved_.end()) {
    for (const auto& [pod, slot] : group->second) {
      if (pod == request.pod) {
        own = slot.node;
      } else if (request.is_bound(pod, slot.node)) {
        bound.push_back(pod);  // It has used up a slot of the picture already.
      } else {
        ++given[slot.node];
        rank_is_given = rank_is_given || (request.rank && slot.rank == request.rank);
      }
    }
  }
  for (const Uid& pod : bound) erase_reservation(pod);
  if (request.rank) {
    if (rank_is_given || request.free.empty()) return std::nullopt;
    return request.free.front();
  }
  std::vector<NodeName> left;
  for (const NodeName& node : request.free) {
    const auto taken = given.find(node);
    if (taken != given.end() && taken->second > 0)
      --taken->second;
    else
      left.push_back(node);
  }
  if (own && std::find(left.begin(), left.end(), *own) != left.end() && request.is_offered(*own)) {
    return own;
  }
  const auto first = std::find_if(left.begin(), left.end(), request.is_offered);
  if (first == left.end()) return std::nullopt;
  return *first;
}

void Ledger::set_reservation(const Uid& pod, const Group& group, const Slot& slot) {
  if (limits_.reservations == 0) return;
  while (reservations_.size() >= limits_.reservations) {
    const Uid oldest = reservations_by_age_.begin()->second;
    erase_reservation(oldest);
    ++dropped_;
  }
  const std::uint64_t sequence = next_sequence_++;
  reservations_.emplace(pod, Reservation{group, sequence});
  reserved_[group].emplace(pod, slot);
  reservations_by_age_.emplace(sequence, pod);
}

void Ledger::erase_reservation(const Uid& pod) {
  const auto found = reservations_.find(pod);
  if (found == reservations_.end()) return;
  const auto group = reserved_.find(found->second.group);
  group->second.erase(pod);
  if (group->second.empty()) reserved_.erase(group);
  reservations_by_age_.erase(found->second.sequence);
  reservations_.erase(found);
}

void Ledger::record_refusal(RefusedPod refused) {
  const std::lock_guard lock(mutex_);
  const Uid uid = refused.pod.meta.uid;
  if (limits_.refusals == 0 || gone_.contains(uid)) return;
  auto pod = std::make_shared<const RefusedPod>(std::move(refused));
  if (const auto found = refused_.find(uid); found != refused_.end()) {
    found->second.pod = std::move(pod);
    return;
  }
  while (refused_.size() >= limits_.refusals) {
    const Uid oldest = refused_by_age_.begin()->second;
    erase_refusal(oldest);
    ++dropped_;
  }
  const std::uint64_t sequence = next_sequence_++;
  refused_by_age_.emplace(sequence, uid);
  refused_.emplace(uid, Refused{std::move(pod), 0, std::nullopt, sequence});
}

std::vector<std::shared_ptr<const RefusedPod>> Ledger::refusals_before(std::uint64_t generation,
                                                                       Instant now) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const RefusedPod>> list;
  for (const auto& [sequence, uid] : refused_by_age_) {
    const Refused& refused = refused_.at(uid);
    if (refused.pod->generation >= generation) continue;
    if (refused.not_before && now < *refused.not_before) continue;
    list.push_back(refused.pod);
  }
  return list;
}

void Ledger::mark_woken(const Uid& uid, Instant now) {
  const std::lock_guard lock(mutex_);
  const auto found = refused_.find(uid);
  if (found == refused_.end()) return;
  constexpr std::int64_t kLongest = 6;  // 2^6 s
  const std::int64_t doublings = std::min(found->second.woken++, kLongest);
  found->second.not_before = now + std::chrono::seconds(std::int64_t{1} << doublings);
}

void Ledger::erase_refusal(const Uid& uid) {
  const auto found = refused_.find(uid);
  if (found == refused_.end()) return;
  refused_by_age_.erase(found->second.sequence);
  refused_.erase(found);
}

LedgerStats Ledger::stats() const {
  const std::lock_guard lock(mutex_);
  return LedgerStats{answers_.size(), reservations_.size(), refused_.size(), dropped_};
}

}  // namespace muster::extender
