#include "kube/codec/yaml.hpp"

#include "kube/codec/json_text.hpp"
#include "kube/codec/yaml_scalar.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace muster::kube {
namespace {

constexpr std::size_t kMaxText = 256U << 20U;
constexpr std::size_t kMaxDepth = 64;
/// What aliases may add to a document, in bytes of JSON.
constexpr std::size_t kMaxExpansion = 16U << 20U;
/// What merge keys may go through, in bytes of keys.
constexpr std::size_t kMaxMerged = 1U << 20U;

/// One node of a document before it becomes JSON. Aliased nodes are shared, so a document takes no
/// more room here than its text.
struct Node {
  enum class Kind { kScalar, kSequence, kMap };
  struct Member;
  Kind kind = Kind::kScalar;
  std::string json;  ///< Of a scalar.
  std::vector<std::shared_ptr<const Node>> elements;
  std::vector<Member> members;
};
using NodePtr = std::shared_ptr<const Node>;
struct Node::Member {
  std::string key;
  NodePtr value;
};

/// Carries our own refusal out of yaml-cpp's parser, which knows no other way to stop.
struct Refusal {
  Error error;
};

[[noreturn]] void refuse(const YAML::Mark& mark, std::string_view what,
                         ErrorCode code = ErrorCode::kInvalidArgument) {
  throw Refusal{
      Error{code, fmt::format("line {}, column {}: {}", mark.line + 1, mark.column + 1, what)}};
}

/// Builds the nodes of one document from yaml-cpp's events.
class Builder : public YAML::EventHandler {
 public:
  /// The document's root, or nothing for an empty one.
  [[nodiscard]] NodePtr root() const { return root_; }
  /// Where the document's first token is.
  [[nodiscard]] const YAML::Mark& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_scalar(mark, anchor, "null", "");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    std::string json;
    if (const auto plain = resolve(mark, tag, value))
      json = *plain;
    else
      append_json_string(json, value);
    add_scalar(mark, anchor, std::move(json), value, tag == "?");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "an alias inside the value it names");
    if (awaits_key()) {
      if (found->second->kind != Node::Kind::kScalar) refuse(mark, "a key must be a scalar");
      stack_.back().key = key_text(*found->second);
      stack_.back().has_key = true;
      return;
    }
    attach(found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, "tag:yaml.org,2002:seq", anchor, Node::Kind::kSequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, "tag:yaml.org,2002:map", anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override {
    Frame& frame = stack_.back();
    check_keys(frame);
    if (!frame.merges.empty()) merge(frame);
    close();
  }

 private:
  struct Frame {
    std::shared_ptr<Node> node;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    std::string key;  ///< Of the member whose value comes next.
    bool has_key = false;
    bool merge_key = false;       ///< That key is a plain `<<`.
    std::vector<NodePtr> merges;  ///< Values of `<<`.
  };

  [[nodiscard]] bool awaits_key() const {
    return !stack_.empty() && stack_.back().node->kind == Node::Kind::kMap &&
           !stack_.back().has_key;
  }

  /// The JSON text of a scalar that is no string.
  static std::optional<std::string> resolve(const YAML::Mark& mark, const std::string& tag,
                                            const std::string& value) {
    static constexpr std::string_view kCore = "tag:yaml.org,2002:";
    if (tag == "?") return resolve_plain_scalar(value);
    if (tag == "!" || tag.empty()) return std::nullopt;
    const std::string_view name =
        tag.starts_with(kCore) ? std::string_view(tag).substr(kCore.size()) : std::string_view();
    if (name == "str" || name == "binary" || name == "timestamp") return std::nullopt;
    const auto plain = resolve_plain_scalar(value);
    const bool is_null = plain == "null";
    const bool is_bool = plain == "true" || plain == "false";
    const bool fits = (name == "null" && is_null) || (name == "bool" && is_bool) ||
                      ((name == "int" || name == "float") && plain && !is_null && !is_bool);
    if (!fits) refuse(mark, fmt::format("cannot read \"{}\" as {}", value.substr(0, 64), tag));
    return plain;
  }

  /// A scalar's text as a key: every key of a JSON object is a string.
  static std::string key_text(const Node& scalar) {
    if (!scalar.json.starts_with('"')) return scalar.json;
    const Result<Json> parsed = Json::parse(scalar.json);
    return parsed ? std::string(parsed->string_or("")) : std::string();
  }

  void add_scalar(const YAML::Mark& mark, YAML::anchor_t anchor, std::string json,
                  const std::string& text, bool plain = true) {
    auto node = std::make_shared<Node>();
    node->json = std::move(json);
    if (awaits_key()) {
      Frame& frame = stack_.back();
      frame.merge_key = plain && text == "<<";
      frame.key = text.empty() && node->json == "null" ? "null" : text;
      frame.has_key = true;
      frame.mark = mark;
      if (anchor != 0) anchors_[anchor] = node;
      return;
    }
    if (anchor != 0) anchors_[anchor] = node;
    attach(node);
  }

  void open(const YAML::Mark& mark, const std::string& tag, std::string_view core_tag,
            YAML::anchor_t anchor, Node::Kind kind) {
    if (awaits_key()) refuse(mark, "a key must be a scalar");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != core_tag)
      refuse(mark, fmt::format("unknown tag {}", tag.substr(0, 64)));
    if (stack_.size() >= kMaxDepth) {
      refuse(mark, fmt::format("nested too deeply (want at most {} levels)", kMaxDepth),
             ErrorCode::kTooLarge);
    }
    Frame frame;
    frame.node = std::make_shared<Node>();
    frame.node->kind = kind;
    frame.mark = mark;
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  void close() {
    const Frame frame = std::move(stack_.back());
    stack_.pop_back();
    // Only now: an alias inside its own value would have no end.
    if (frame.anchor != 0) anchors_[frame.anchor] = frame.node;
    attach(frame.node);
  }

  void attach(const NodePtr& node) {
    if (stack_.empty()) {
      root_ = node;
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node->kind == Node::Kind::kSequence) {
      frame.node->elements.push_back(node);
      return;
    }
    frame.has_key = false;
    if (frame.merge_key)
      frame.merges.push_back(node);
    else
      frame.node->members.push_back({std::move(frame.key), node});
    frame.merge_key = false;
    frame.key.clear();
  }

  static void check_keys(const Frame& frame) {
    std::vector<std::string_view> keys;
    keys.reserve(frame.node->members.size());
    for (const Node::Member& member : frame.node->members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end())
      refuse(frame.mark, fmt::format("key \"{}\" is given twice above", twice->substr(0, 64)));
  }

  /// Adds the members of the `<<` mappings that the mapping has not itself; the first one wins.
  void merge(Frame& frame) {
    std::map<std::string_view, NodePtr> known;
    for (const Node::Member& member : frame.node->members) known.emplace(member.key, nullptr);
    std::vector<Node::Member> added;
    const auto add_all = [&](const NodePtr& source) {
      if (source->kind != Node::Kind::kMap)
        refuse(frame.mark, "a merge key (<<) must name a mapping");
      for (const Node::Member& member : source->members) {
        merged_ += member.key.size() + 1;
        if (merged_ > kMaxMerged)
          refuse(frame.mark, "merge keys expand too far", ErrorCode::kTooLarge);
        // The key's text lives in `source`, which `added` or an anchor keeps alive.
        if (known.emplace(member.key, source).second) added.push_back(member);
      }
    };
    for (const NodePtr& source : frame.merges) {
      if (source->kind != Node::Kind::kSequence) {
        add_all(source);
        continue;
      }
      for (const NodePtr& element : source->elements) add_all(element);
    }
    std::move(added.begin(), added.end(), std::back_inserter(frame.node->members));
  }

  NodePtr root_;
  YAML::Mark start_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
  std::size_t merged_ = 0;
};

/// Writes a node as JSON text. False when that grows past `limit` bytes or the depth limit: only
/// aliases can take it there.
bool append_json(std::string& out, const Node& node, std::size_t limit, std::size_t depth) {
  if (out.size() > limit || depth > kMaxDepth) return false;
  switch (node.kind) {
    case Node::Kind::kScalar:
      out += node.json;
      return true;
    case Node::Kind::kSequence: {
      char separator = '[';
      for (const NodePtr& element : node.elements) {
        out.push_back(separator);
        separator = ',';
        if (!append_json(out, *element, limit, depth + 1)) return false;
      }
      out += node.elements.empty() ? "[]" : "]";
      return true;
    }
    case Node::Kind::kMap: {
      char separator = '{';
      for (const Node::Member& member : node.members) {
        out.push_back(separator);
        separator = ',';
        append_json_string(out, member.key);
        out.push_back(':');
        if (!append_json(out, *member.value, limit, depth + 1)) return false;
      }
      out += node.members.empty() ? "{}" : "}";
      return true;
    }
  }
  return false;
}

Result<Json> to_json(const Node& root, std::size_t text_size) {
  // Escapes, quotes and key separators make JSON of a text at most a few times longer.
  const std::size_t limit = 6 * text_size + kMaxExpansion;
  std::string json;
  if (!append_json(json, root, limit, 0))
    return fail(ErrorCode::kTooLarge, "aliases expand too far");
  return Json::parse(json, Json::Limits{.bytes = json.size(), .depth = kMaxDepth});
}

/// Finds out whether a document that is not the first one was announced by a `---` or `...` line.
/// yaml-cpp takes whatever follows a complete value for one more document.
class Separators {
 public:
  explicit Separators(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  [[nodiscard]] bool before(int line) const {
    for (auto i = std::min(static_cast<std::size_t>(line) + 1, lines_.size()); i-- > 0;) {
      const std::string_view text = lines_[i];
      if (text.starts_with("---") || text.starts_with("...")) return true;
      // Only blank lines, comments and directives may stand between it and the document.
      const std::size_t first = text.find_first_not_of(" \t\r");
      const bool content =
          first != std::string_view::npos && text[first] != '#' && text[first] != '%';
      if (content && i != static_cast<std::size_t>(line)) return false;
    }
    return false;
  }

 private:
  std::vector<std::string_view> lines_;
};

bool begins_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

Error parser_error(const YAML::Exception& error) {
  const bool open_quote = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
  const std::string what = open_quote ? "a quoted text does not end" : error.msg;
  return invalid_argument(
      fmt::format("line {}, column {}: {}", error.mark.line + 1, error.mark.column + 1, what));
}

}  // namespace

Result<std::vector<Json>> parse_yaml(std::string_view text) {
  if (text.size() > kMaxText) {
    return fail(ErrorCode::kTooLarge, fmt::format("YAML of {} bytes is too large (want at most {})",
                                                  text.size(), kMaxText));
  }
  if (const std::size_t valid = valid_utf8_prefix(text); valid < text.size()) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
    return fail(ErrorCode::kInvalidArgument, fmt::format("line {}: the text is not UTF-8", line));
  }
  // JSON is YAML, but its own parser is far faster; what it does not take may still be YAML.
  std::string also;
  if (begins_like_json(text)) {
    Result<Json> json = Json::parse(text, Json::Limits{.bytes = kMaxText, .depth = kMaxDepth});
    if (json) return std::vector<Json>{*std::move(json)};
    if (json.error().code == ErrorCode::kTooLarge)
      return fail(json.error().with_context("document 1"));
    also = fmt::format(" (as JSON: {})", json.error().message);
  }
  std::size_t number = 1;
  const auto failure = [&](const Error& error) {
    return fail(error.code,
                fmt::format("document {}: {}{}", number, error.message, number == 1 ? also : ""));
  };
  std::vector<Json> documents;
  try {
    const Separators separators(text);
    // yaml-cpp lets a quoted scalar run into the end of the text, but not into an end marker.
    std::istringstream stream{std::string(text) + (text.ends_with('\n') ? "...\n" : "\n...\n")};
    YAML::Parser parser(stream);
    int last_start = -1;
    for (;; ++number) {
      Builder builder;
      if (!parser.HandleNextDocument(builder)) break;
      const NodePtr root = builder.root();
      // Over some broken texts yaml-cpp stands still and finds empty documents for ever.
      if (builder.start().pos <= last_start) refuse(builder.start(), "unexpected text");
      last_start = builder.start().pos;
      if (number > 1 && root != nullptr && !separators.before(builder.start().line))
        refuse(builder.start(),
               "more text after a complete value (want \"---\" between documents)");
      if (root == nullptr || (root->kind == Node::Kind::kScalar && root->json == "null")) continue;
      Result<Json> json = to_json(*root, text.size());
      if (!json) return failure(json.error());
      documents.push_back(*std::move(json));
    }
  } catch (const Refusal& refusal) {
    return failure(refusal.error);
  } catch (const YAML::Exception& error) {
    return failure(parser_error(error));
  }
  return documents;
}

}  // namespace muster::kube
