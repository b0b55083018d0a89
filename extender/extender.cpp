#include "extender/extender.hpp"

#include "extender/filter.hpp"
#include "extender/membership.hpp"
#include "extender/preempt.hpp"
#include "extender/prioritize.hpp"
#include "kube/codec/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace muster::extender {
namespace {

using engine::Snapshot;
using kube::append_json_string;
using kube::Json;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// A member as Go's decoder finds it: whatever the case of its name, the last one wins.
Json get_any_case(const Json& object, std::string_view name) {
  Json found;
  for (const auto& [key, value] : object.members()) {
    if (equal_ignoring_case(key, name)) found = value;
  }
  return found;
}

/// ExtenderArgs of k8s.io/kube-scheduler/extender/v1, as far as we need them.
struct Args {
  Json body;  ///< Owns the bytes that `names` points to.
  kube::Pod pod;
  bool pod_known = true;  ///< False: only its metadata could be read.
  std::vector<std::string_view> names;
  std::vector<Json> nodes;  ///< Same order as `names`; only without nodeCacheCapable.
  bool by_name = true;
};

Result<void> read_pod(const Json& body, kube::Pod& pod, bool& known) {
  const Json object = get_any_case(body, "Pod");
  if (!object.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "Pod: missing (want an object)");
  }
  auto decoded = kube::decode_pod(object);
  if (decoded) {
    pod = std::move(*decoded);
    return {};
  }
  // A newer API may hold what we cannot read; whose pod it is stays plain.
  known = false;
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error().with_context("Pod"));
  pod.meta = std::move(*meta);
  return {};
}

Result<void> read_nodes(const Json& list, Args& args) {
  const Json items = get_any_case(list, "items");
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json node = items.at(i);
    const auto name = node.get("metadata", "name").as_string();
    if (!name) return fail(name.error().with_context(fmt::format("Nodes.items[{}]", i)));
    args.names.push_back(*name);
    args.nodes.push_back(std::move(node));
  }
  return {};
}

Result<Args> read_args(std::string_view text) {
  auto body = Json::parse(text);
  if (!body) return fail(body.error());
  if (!body->is_object()) return fail(ErrorCode::kInvalidArgument, "body: want an object");
  Args args;
  args.body = std::move(*body);
  if (auto read = read_pod(args.body, args.pod, args.pod_known); !read) return fail(read.error());
  const Json names = get_any_case(args.body, "NodeNames");
  const Json nodes = get_any_case(args.body, "Nodes");
  if (names.missing() && !nodes.missing()) {
    args.by_name = false;
    if (auto read = read_nodes(nodes, args); !read) return fail(read.error());
  } else if (!names.missing()) {
    auto read = names.as_strings();
    if (!read) return fail(read.error().with_context("NodeNames"));
    args.names = *std::move(read);
  }
  return args;
}

/// True when JSON needs no escape in it. Names of nodes never do, and an answer has over a
/// thousand: eight characters at a time.
bool is_plain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHighs = 0x8080808080808080U;
  // The high bit of every byte that is zero (or, in vain but harmless, of one above a zero).
  const auto zeros = [](std::uint64_t block) { return (block - kOnes) & ~block & kHighs; };
  for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t block = 0;
    std::memcpy(&block, text.data(), sizeof(block));
    const std::uint64_t control = (block - (kOnes * 0x20)) & ~block & kHighs;
    if ((control | zeros(block ^ (kOnes * '"')) | zeros(block ^ (kOnes * '\\'))) != 0) return false;
  }
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
  });
}

/// Text that grows in big steps, for answers of a hundred thousand bytes: appending to a string
/// looks at its room byte by byte.
class TextWriter {
 public:
  explicit TextWriter(std::size_t room) { text_.resize(room); }

  void add(std::string_view text) {
    make_room(text.size());
    put(text);
  }
  /// `before`, the name as a JSON string, `after`.
  void add_name(std::string_view before, std::string_view name, std::string_view after) {
    if (!is_plain(name)) {
      std::string quoted;
      append_json_string(quoted, name);
      add(before);
      add(quoted);
      add(after);
      return;
    }
    make_room(before.size() + name.size() + after.size() + 2);
    put(before);
    text_[size_++] = '"';
    put(name);
    text_[size_++] = '"';
    put(after);
  }
  [[nodiscard]] std::string take() {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  void make_room(std::size_t more) {
    if (text_.size() - size_ < more) text_.resize((text_.size() * 2) + more);
  }
  void put(std::string_view text) { size_ += text.copy(text_.data() + size_, text.size()); }

  std::string text_;  ///< Written up to size_.
  std::size_t size_ = 0;
};

std::size_t bytes_of(const std::vector<std::string_view>& names) {
  return std::accumulate(names.begin(), names.end(), std::size_t{0},
                         [](std::size_t sum, std::string_view name) { return sum + name.size(); });
}

std::string render_filter(const Args& args, const FilterResult& result) {
  // Quotes, commas and colons; of the refusals, all have one text or nearly so.
  std::size_t room = 256 + bytes_of(args.names) + (result.passed.size() * 3);
  if (!result.refused.empty()) {
    room += result.refused.size() * (6 + to_string(result.refused.front().second).size());
  }
  TextWriter out(room);
  std::string_view separator;
  if (args.by_name) {
    out.add(R"({"Nodes":null,"NodeNames":[)");
    for (const std::size_t i : result.passed) {
      out.add_name(separator, args.names[i], {});
      separator = ",";
    }
    out.add("]");
  } else {
    out.add(R"({"Nodes":{"metadata":{},"items":[)");
    for (const std::size_t i : result.passed) {
      out.add(separator);
      out.add(args.nodes[i].dump());
      separator = ",";
    }
    out.add(R"(]},"NodeNames":null)");
  }
  out.add(R"(,"FailedNodes":null,"FailedAndUnresolvableNodes":)");
  if (result.refused.empty()) {
    out.add("null");
  } else {
    separator = "{";
    for (const auto& [i, refusal] : result.refused) {
      out.add_name(separator, args.names[i], ":\"");
      out.add(to_string(refusal));  // Nothing in these texts needs escaping.
      out.add("\"");
      separator = ",";
    }
    out.add("}");
  }
  out.add(R"(,"Error":""})");
  return out.take();
}

/// The answer for a pod that is none of our business, or that we cannot judge.
FilterResult pass_all(std::size_t count) {
  FilterResult result;
  result.passed.resize(count);
  std::iota(result.passed.begin(), result.passed.end(), std::size_t{0});
  return result;
}

bool cannot_judge(const Args& args, const Snapshot& snapshot) {
  return !args.pod_known && !has_plan(find_membership(args.pod, snapshot));
}

std::string answer_filter(const Args& args, const Snapshot& snapshot, Ledger& ledger, Instant now) {
  if (cannot_judge(args, snapshot)) return render_filter(args, pass_all(args.names.size()));
  return render_filter(args, filter(args.pod, args.names, snapshot, ledger, now));
}

std::string answer_prioritize(const Args& args, const Snapshot& snapshot) {
  if (!args.pod_known) return "[]";
  const std::vector<std::int64_t> scores = prioritize(args.pod, args.names, snapshot);
  constexpr std::size_t kAroundName = 24;  // `{"Host":"","Score":10},`
  TextWriter out(16 + bytes_of(args.names) + (scores.size() * kAroundName));
  std::string_view before = R"([{"Host":)";
  for (std::size_t i = 0; i < scores.size(); ++i) {
    out.add_name(before, args.names[i], R"(,"Score":)");
    out.add(std::to_string(scores[i]));
    before = R"(},{"Host":)";
  }
  out.add(scores.empty() ? "[]" : "}]");
  return out.take();
}

/// ExtenderPreemptionArgs, in either form.
struct PreemptionArgs {
  Json body;  ///< Owns the bytes that `candidates` points to.
  kube::Pod pod;
  bool pod_known = true;
  std::vector<PreemptionCandidate> candidates;
  std::vector<std::int64_t> pdb_violations;  ///< Per candidate.
};

Result<void> read_candidates(const Json& map, bool meta, PreemptionArgs& args) {
  for (const auto& [node, victims] : map.members()) {
    PreemptionCandidate candidate{.node = node, .victims = {}};
    const Json pods = get_any_case(victims, "Pods");
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const Json pod = pods.at(i);
      const Json uid = meta ? get_any_case(pod, "UID") : pod.get("metadata", "uid");
      const auto text = uid.as_string();
      if (!text) return fail(text.error().with_context(fmt::format("{}.Pods[{}]", node, i)));
      candidate.victims.emplace_back(*text);
    }
    args.candidates.push_back(std::move(candidate));
    args.pdb_violations.push_back(get_any_case(victims, "NumPDBViolations").int_or(0));
  }
  return {};
}

Result<PreemptionArgs> read_preemption_args(std::string_view text) {
  auto body = Json::parse(text);
  if (!body) return fail(body.error());
  if (!body->is_object()) return fail(ErrorCode::kInvalidArgument, "body: want an object");
  PreemptionArgs args;
  args.body = std::move(*body);
  if (auto read = read_pod(args.body, args.pod, args.pod_known); !read) return fail(read.error());
  const Json by_meta = get_any_case(args.body, "NodeNameToMetaVictims");
  const Json by_pod = get_any_case(args.body, "NodeNameToVictims");
  const bool meta = !by_meta.missing();
  auto read = read_candidates(meta ? by_meta : by_pod, meta, args);
  if (!read) return fail(read.error());
  return args;
}

std::string answer_preempt(const PreemptionArgs& args, const Snapshot& snapshot, Ledger& ledger,
                           Instant now) {
  std::vector<std::size_t> kept;
  if (args.pod_known || has_plan(find_membership(args.pod, snapshot))) {
    kept = preempt(args.pod, args.candidates, snapshot, ledger, now);
  } else {
    for (std::size_t i = 0; i < args.candidates.size(); ++i) {
      if (!args.candidates[i].victims.empty()) kept.push_back(i);
    }
  }
  std::string out = R"({"NodeNameToMetaVictims":{)";
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const PreemptionCandidate& candidate = args.candidates[kept[k]];
    if (k > 0) out += ',';
    append_json_string(out, candidate.node);
    out += R"(:{"Pods":[)";
    for (std::size_t v = 0; v < candidate.victims.size(); ++v) {
      out += v > 0 ? R"(,{"UID":)" : R"({"UID":)";
      append_json_string(out, candidate.victims[v].value());
      out += '}';
    }
    out += fmt::format(R"(],"NumPDBViolations":{}}})", args.pdb_violations[kept[k]]);
  }
  out += "}}";
  return out;
}

Answer bad_request(const Error& error) {
  std::string body = R"({"Error":)";
  append_json_string(body, error.message);
  body += '}';
  return Answer{400, std::move(body)};
}

}  // namespace

Answer answer(std::string_view verb, std::string_view body, const Snapshot& snapshot,
              Ledger& ledger, Instant now) {
  if (verb == "filter" || verb == "prioritize") {
    const auto args = read_args(body);
    if (!args) return bad_request(args.error());
    return Answer{200,
                  verb == "filter" ? answer_filter(*args, snapshot, ledger, now)
                                   : answer_prioritize(*args, snapshot),
                  args->names.size()};
  }
  if (verb == "preempt") {
    const auto args = read_preemption_args(body);
    if (!args) return bad_request(args.error());
    return Answer{200, answer_preempt(*args, snapshot, ledger, now), args->candidates.size()};
  }
  return Answer{404, R"({"Error":"unknown verb"})"};
}

}  // namespace muster::extender
