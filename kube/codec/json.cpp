#include "kube/codec/json.hpp"

#include "kube/codec/json_repair.hpp"
#include "kube/codec/json_text.hpp"

// Before RapidJSON's headers, which only this file includes: plain pointers as member iterators,
// for those of its class have operators that C++20 finds ambiguous; and blocks of 16 bytes at a
// time through plain text. That code takes the control characters 0x1A to 0x1F for plain text, so
// they are refused beforehand, and RapidJSON's writers are not used.
#define RAPIDJSON_NOMEMBERITERATORCLASS
#if defined(__SSE2__)
#define RAPIDJSON_SSE2
#endif
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

namespace muster::kube {
namespace {

using Value = rapidjson::Value;
using Member = Value::Member;
using Allocator = rapidjson::MemoryPoolAllocator<>;
using Size = rapidjson::SizeType;

/// What a Json's shared pointer owns: one tree and the memory it lives in.
struct Tree {
  explicit Tree(std::size_t chunk) : allocator(chunk) {}
  std::unique_ptr<char[]> text;  ///< Of a parsed tree: its strings stay in here, decoded in place.
  Allocator allocator;
  Value root;
};
constexpr std::size_t kSmallChunk = 512;
/// RapidJSON reads ahead in blocks of this size.
constexpr std::size_t kPadding = 16;

std::string_view view(const Value& text) {
  return std::string_view(text.GetString(), text.GetStringLength());
}

void set_string(Value& target, std::string_view text, Allocator& allocator) {
  // RapidJSON wants a non-null pointer even for no bytes.
  target.SetString(text.empty() ? "" : text.data(), static_cast<Size>(text.size()), allocator);
}

/// A copy that shares nothing with the source. RapidJSON's own copy would go on pointing to strings
/// that live in the source's text. Depth is bounded by how the source came to be.
void copy_into(Value& target, const Value& source, Allocator& allocator) {
  if (source.IsString()) {
    set_string(target, view(source), allocator);
  } else if (source.IsArray()) {
    target.SetArray().Reserve(source.Size(), allocator);
    for (Size i = 0; i < source.Size(); ++i) {
      Value element;
      copy_into(element, source[i], allocator);
      target.PushBack(element, allocator);
    }
  } else if (source.IsObject()) {
    target.SetObject();
    for (Size i = 0; i < source.MemberCount(); ++i) {
      const Member& member = source.MemberBegin()[i];
      Value name;
      set_string(name, view(member.name), allocator);
      Value value;
      copy_into(value, member.value, allocator);
      target.AddMember(name, value, allocator);
    }
  } else {
    target.CopyFrom(source, allocator);
  }
}

const Value* find(const Value& object, std::string_view key) {
  const Member* const members = object.MemberBegin();
  for (Size i = 0; i < object.MemberCount(); ++i) {
    if (view(members[i].name) == key) return &members[i].value;
  }
  return nullptr;
}
Value* find(Value& object, std::string_view key) {
  return const_cast<Value*>(find(std::as_const(object), key));
}

/// Members ordered by key, equal keys in document order.
std::vector<Size> order_by_key(const Value& object) {
  std::vector<Size> order(object.MemberCount());
  std::iota(order.begin(), order.end(), Size{0});
  const Member* const members = object.MemberBegin();
  std::sort(order.begin(), order.end(), [members](Size a, Size b) {
    const auto by_key = view(members[a].name) <=> view(members[b].name);
    return by_key == 0 ? a < b : by_key < 0;
  });
  return order;
}

/// Which members a later one of the same name overrides; empty when none.
std::vector<bool> find_overridden(const Value& object) {
  const Member* const members = object.MemberBegin();
  const Size count = object.MemberCount();
  std::vector<bool> overridden;
  constexpr Size kPairwise = 12;  // Below this, comparing all pairs beats sorting.
  if (count <= kPairwise) {
    for (Size i = 0; i < count; ++i) {
      for (Size j = i + 1; j < count; ++j) {
        if (view(members[i].name) != view(members[j].name)) continue;
        overridden.resize(count, false);
        overridden[i] = true;
      }
    }
    return overridden;
  }
  const std::vector<Size> order = order_by_key(object);
  for (Size i = 0; i + 1 < count; ++i) {
    if (view(members[order[i]].name) != view(members[order[i + 1]].name)) continue;
    overridden.resize(count, false);
    overridden[order[i]] = true;
  }
  return overridden;
}

/// Drops overridden members everywhere, so that everyone else may assume unique keys. Recursion is
/// bounded by the depth that parsing allowed.
void drop_overridden(Value& value, Allocator& allocator) {
  if (value.IsArray()) {
    for (Size i = 0; i < value.Size(); ++i) drop_overridden(value[i], allocator);
    return;
  }
  if (!value.IsObject()) return;
  if (const std::vector<bool> overridden = find_overridden(value); !overridden.empty()) {
    Value kept(rapidjson::kObjectType);
    Member* const members = value.MemberBegin();
    for (Size i = 0; i < value.MemberCount(); ++i) {
      if (!overridden[i]) kept.AddMember(members[i].name, members[i].value, allocator);
    }
    value.Swap(kept);
  }
  for (Size i = 0; i < value.MemberCount(); ++i)
    drop_overridden(value.MemberBegin()[i].value, allocator);
}

/// A document that refuses what RapidJSON lets through: too deep nesting and strings with the
/// second half of a surrogate pair alone. It reads numbers itself, for RapidJSON's own exact
/// reading shifts by an undefined amount for some spellings of zero.
class LimitedDocument : public rapidjson::Document {
 public:
  /// `escapes`: whether the text holds any; strings are checked only then.
  LimitedDocument(Allocator* allocator, std::size_t depth, bool escapes)
      : rapidjson::Document(allocator), limit_(depth), escapes_(escapes) {}
  bool StartObject() { return enter() && rapidjson::Document::StartObject(); }
  bool StartArray() { return enter() && rapidjson::Document::StartArray(); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool /*copy*/) {
    const char* const end = text + length;
    std::int64_t integer = 0;
    std::uint64_t natural = 0;
    double real = 0;
    if (const auto read = std::from_chars(text, end, integer);
        read.ec == std::errc() && read.ptr == end)
      return Int64(integer);
    if (const auto read = std::from_chars(text, end, natural);
        read.ec == std::errc() && read.ptr == end)
      return Uint64(natural);
    if (std::from_chars(text, end, real).ec != std::errc()) {
      complaint_ = "a number out of range";
      return false;
    }
    return Double(real);
  }
  bool String(const char* text, rapidjson::SizeType length, bool copy) {
    if (escapes_ && valid_utf8_prefix(std::string_view(text, length)) < length) {
      complaint_ = "half of a surrogate pair in a string";
      return false;
    }
    return rapidjson::Document::String(text, length, copy);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool copy) {
    return String(text, length, copy);
  }
  bool EndObject(rapidjson::SizeType count) {
    --depth_;
    return rapidjson::Document::EndObject(count);
  }
  bool EndArray(rapidjson::SizeType count) {
    --depth_;
    return rapidjson::Document::EndArray(count);
  }
  /// What ended the parsing, if it was neither RapidJSON nor the depth.
  [[nodiscard]] std::string_view complaint() const { return complaint_; }

 protected:
  /// Whether one level more were too deep.
  [[nodiscard]] bool is_full() const { return depth_ >= limit_; }

 private:
  bool enter() { return ++depth_ <= limit_; }
  std::size_t limit_;
  std::size_t depth_ = 0;
  bool escapes_;
  std::string_view complaint_;
};

/// A document that leaves out `managedFields` of any `metadata`, and takes null for what is nested
/// too deeply. Of what is left out only the nesting is followed. Its text was repaired before.
class LenientDocument : public LimitedDocument {
 public:
  LenientDocument(Allocator* allocator, std::size_t depth)
      : LimitedDocument(allocator, depth, /*escapes=*/false) {
    levels_.reserve(16);  // Most objects are no deeper.
  }
  bool Null() { return skip_scalar() || LimitedDocument::Null(); }
  bool Bool(bool value) { return skip_scalar() || LimitedDocument::Bool(value); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool copy) {
    return skip_scalar() || LimitedDocument::RawNumber(text, length, copy);
  }
  bool String(const char* text, rapidjson::SizeType length, bool copy) {
    return skip_scalar() || LimitedDocument::String(text, length, copy);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool copy) {
    if (skipped_levels_ > 0) return true;
    const std::string_view key(text, length);
    metadata_next_ = key == "metadata";
    if (levels_.back().metadata && key == "managedFields") {
      ++levels_.back().left_out;
      skip_next_ = true;
      return true;
    }
    return LimitedDocument::Key(text, length, copy);
  }
  bool StartObject() {
    if (skip_start()) return true;
    levels_.push_back({.metadata = std::exchange(metadata_next_, false)});
    return LimitedDocument::StartObject();
  }
  bool StartArray() {
    if (skip_start()) return true;
    levels_.push_back({});
    metadata_next_ = false;  // The objects in it are not the member's value.
    return LimitedDocument::StartArray();
  }
  bool EndObject(rapidjson::SizeType count) {
    return skip_end() || LimitedDocument::EndObject(count - pop());
  }
  bool EndArray(rapidjson::SizeType count) {
    return skip_end() || LimitedDocument::EndArray(count - pop());
  }

 private:
  /// An object or array that is being read into the tree.
  struct Level {
    bool metadata = false;             ///< The value of a member of that name.
    rapidjson::SizeType left_out = 0;  ///< RapidJSON's count of members knows nothing of it.
  };

  /// How many members of the level that ends were left out.
  rapidjson::SizeType pop() {
    metadata_next_ = false;  // What follows is in another object.
    const rapidjson::SizeType left_out = levels_.back().left_out;
    levels_.pop_back();
    return left_out;
  }
  bool skip_scalar() { return skipped_levels_ > 0 || std::exchange(skip_next_, false); }
  bool skip_start() {
    if (skipped_levels_ == 0) {
      const bool left_out = std::exchange(skip_next_, false);
      if (!left_out && !is_full()) return false;
      if (!left_out) LimitedDocument::Null();
    }
    ++skipped_levels_;
    return true;
  }
  bool skip_end() {
    if (skipped_levels_ == 0) return false;
    --skipped_levels_;
    return true;
  }

  std::vector<Level> levels_;
  bool metadata_next_ = false;      // the member begun is called so
  bool skip_next_ = false;          // the value of the member begun is left out
  std::size_t skipped_levels_ = 0;  // how deep what is read lies in what is left out
};

// In place: strings are not copied. The encoding is validated beforehand, for byte by byte takes
// several times as long.
constexpr unsigned kParseFlags = rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseNumbersAsStringsFlag |
                                 rapidjson::kParseStopWhenDoneFlag;

/// How the reading of a text ended.
struct Reading {
  rapidjson::ParseResult outcome;
  std::string_view complaint;  ///< The document's own.
  std::size_t end = 0;         ///< Behind the value.

  [[nodiscard]] bool is_number_out_of_range() const {
    return outcome.Code() == rapidjson::kParseErrorNumberTooBig || !complaint.empty();
  }
};

/// Fills the document from the tree's text, and when that went well the tree from the document.
template <class Handler>
Reading read(Handler& document, Tree& tree) {
  Reading reading;
  rapidjson::InsituStringStream stream(tree.text.get());
  rapidjson::Reader reader;
  const auto generate = [&](rapidjson::Document&) {
    reading.outcome = reader.Parse<kParseFlags>(stream, document);
    return !reading.outcome.IsError();
  };
  document.Populate(generate);
  reading.complaint = document.complaint();
  reading.end = stream.Tell();
  tree.root.Swap(document);
  return reading;
}

/// The tree's own copy of the text, its end marked.
std::span<char> copy_text(Tree& tree, std::string_view text) {
  if (!tree.text) tree.text = std::make_unique_for_overwrite<char[]>(text.size() + kPadding);
  std::copy(text.begin(), text.end(), tree.text.get());
  std::fill_n(tree.text.get() + text.size(), kPadding, '\0');
  return {tree.text.get(), text.size()};
}

Reading read_strictly(Tree& tree, std::string_view text, std::size_t depth, ByteKinds kinds) {
  copy_text(tree, text);
  LimitedDocument document(&tree.allocator, depth, kinds.backslash);
  return read(document, tree);
}

/// Numbers are looked at in advance only when one was out of range, which RapidJSON lets nobody
/// mend: hardly any text has one, and looking takes long.
Reading read_leniently(Tree& tree, std::string_view text, std::size_t depth, ByteKinds kinds) {
  for (bool numbers = false;; numbers = true) {
    const std::span<char> copy = copy_text(tree, text);
    if (kinds.high) repair_utf8(copy);
    if (kinds.backslash) repair_surrogates(copy);
    if (numbers) repair_numbers(copy);
    LenientDocument document(&tree.allocator, depth);
    const Reading reading = read(document, tree);
    if (numbers || !reading.is_number_out_of_range()) return reading;
    tree.allocator.Clear();
  }
}

bool is_white(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// The error that a reading ended with, if any. `text` is the one that was read: a number alone
/// that was out of range has left spaces in it.
Result<void> check(const Reading& reading, std::string_view text, Json::Limits limits) {
  const rapidjson::ParseResult& outcome = reading.outcome;
  if (!reading.complaint.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bad JSON at byte {}: {}", outcome.Offset(), reading.complaint));
  }
  if (outcome.Code() == rapidjson::kParseErrorTermination) {
    return fail(ErrorCode::kTooLarge, fmt::format("JSON is nested too deeply at byte {} (want at "
                                                  "most {} levels)",
                                                  outcome.Offset(), limits.depth));
  }
  if (outcome.IsError()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bad JSON at byte {}: {}", outcome.Offset(),
                            rapidjson::GetParseError_En(outcome.Code())));
  }
  for (std::size_t i = reading.end; i < text.size(); ++i) {
    if (!is_white(text[i])) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("bad JSON at byte {}: more text after the value", i));
    }
  }
  return {};
}

bool equal(const Value& a, const Value& b);

bool equal_numbers(const Value& a, const Value& b) {
  if (a.IsInt64() && b.IsInt64()) return a.GetInt64() == b.GetInt64();
  if (a.IsUint64() && b.IsUint64()) return a.GetUint64() == b.GetUint64();
  return a.GetDouble() == b.GetDouble();
}

bool equal_objects(const Value& a, const Value& b) {
  if (a.MemberCount() != b.MemberCount()) return false;
  const std::vector<Size> order_a = order_by_key(a);
  const std::vector<Size> order_b = order_by_key(b);
  for (std::size_t i = 0; i < order_a.size(); ++i) {
    const Member& left = a.MemberBegin()[order_a[i]];
    const Member& right = b.MemberBegin()[order_b[i]];
    if (view(left.name) != view(right.name) || !equal(left.value, right.value)) return false;
  }
  return true;
}

bool equal(const Value& a, const Value& b) {
  if (a.IsNumber() && b.IsNumber()) return equal_numbers(a, b);
  if (a.GetType() != b.GetType()) return false;
  if (a.IsString()) return view(a) == view(b);
  if (a.IsObject()) return equal_objects(a, b);
  if (!a.IsArray()) return true;
  if (a.Size() != b.Size()) return false;
  for (Size i = 0; i < a.Size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

void append_number(std::string& out, const Value& number) {
  if (number.IsInt64()) {
    fmt::format_to(std::back_inserter(out), "{}", number.GetInt64());
  } else if (number.IsUint64()) {
    fmt::format_to(std::back_inserter(out), "{}", number.GetUint64());
  } else {
    const std::string text = fmt::format("{}", number.GetDouble());
    out += text;
    // What was no integer stays none.
    if (text.find_first_of(".e") == std::string::npos) out += ".0";
  }
}

/// Compact text, or with `step` > 0 indented by so many spaces a level.
void append_text(std::string& out, const Value& value, std::size_t step, std::size_t level) {
  const auto start_line = [&](std::size_t depth) {
    if (step == 0) return;
    out.push_back('\n');
    out.append(step * depth, ' ');
  };
  switch (value.GetType()) {
    case rapidjson::kNullType:
      out += "null";
      return;
    case rapidjson::kFalseType:
    case rapidjson::kTrueType:
      out += value.IsTrue() ? "true" : "false";
      return;
    case rapidjson::kNumberType:
      return append_number(out, value);
    case rapidjson::kStringType:
      return append_json_string(out, view(value));
    case rapidjson::kArrayType:
      out.push_back('[');
      for (Size i = 0; i < value.Size(); ++i) {
        if (i > 0) out.push_back(',');
        start_line(level + 1);
        append_text(out, value[i], step, level + 1);
      }
      if (!value.Empty()) start_line(level);
      out.push_back(']');
      return;
    case rapidjson::kObjectType:
      out.push_back('{');
      for (Size i = 0; i < value.MemberCount(); ++i) {
        const Member& member = value.MemberBegin()[i];
        if (i > 0) out.push_back(',');
        start_line(level + 1);
        append_json_string(out, view(member.name));
        out += step == 0 ? ":" : ": ";
        append_text(out, member.value, step, level + 1);
      }
      if (value.MemberCount() > 0) start_line(level);
      out.push_back('}');
      return;
  }
}

void merge_into(Value& target, const Value& patch, Allocator& allocator) {
  if (!patch.IsObject()) {
    copy_into(target, patch, allocator);
    return;
  }
  if (!target.IsObject()) target.SetObject();
  for (Size i = 0; i < patch.MemberCount(); ++i) {
    const Member& member = patch.MemberBegin()[i];
    Value* const existing = find(target, view(member.name));
    if (member.value.IsNull()) {
      if (existing != nullptr) target.EraseMember(member.name);
    } else if (existing != nullptr) {
      merge_into(*existing, member.value, allocator);
    } else {
      Value name;
      set_string(name, view(member.name), allocator);
      Value value;
      merge_into(value, member.value, allocator);
      target.AddMember(name, value, allocator);
    }
  }
}

tl::unexpected<Error> wrong_type(const Json& json, std::string_view wanted) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("got {}, want {}", describe(json), wanted));
}

}  // namespace

/// The only place where a Json's untyped pointers are given their types.
struct Json::Access {
  static const Value& node(const Json& json) { return *static_cast<const Value*>(json.node_); }
  static Json own(std::shared_ptr<const Tree> tree) {
    Json json;
    json.node_ = &tree->root;
    json.document_ = std::move(tree);
    return json;
  }
  static Json child(const Json& parent, const Value& node) {
    Json json;
    json.document_ = parent.document_;
    json.node_ = &node;
    return json;
  }
  /// A deep copy of the value, null for an absent one.
  static void copy(Value& target, const Json& source, Allocator& allocator) {
    if (source.present())
      copy_into(target, node(source), allocator);
    else
      target.SetNull();
  }
};

namespace {

using Access = Json::Access;

template <class Fill>
Json build(Fill fill) {
  auto tree = std::make_shared<Tree>(kSmallChunk);
  fill(tree->root, tree->allocator);
  return Access::own(std::move(tree));
}

}  // namespace

Result<Json> Json::parse(std::string_view text, Limits limits) {
  if (text.size() > limits.bytes) {
    return fail(ErrorCode::kTooLarge, fmt::format("JSON of {} bytes is too large (want at most {})",
                                                  text.size(), limits.bytes));
  }
  const ByteKinds kinds = kinds_in(text);
  if (const std::size_t valid =
          kinds.high && !limits.lenient ? valid_utf8_prefix(text) : text.size();
      valid < text.size()) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("bad JSON at byte {}: not UTF-8", valid));
  }
  if (const std::size_t at = kinds.low ? find_control(text) : text.size(); at < text.size()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bad JSON at byte {}: a control character", at));
  }
  auto tree = std::make_shared<Tree>(std::max(kSmallChunk, text.size()));
  const Reading reading = limits.lenient ? read_leniently(*tree, text, limits.depth, kinds)
                                         : read_strictly(*tree, text, limits.depth, kinds);
  const std::string_view read_text(tree->text.get(), text.size());
  if (const Result<void> checked = check(reading, read_text, limits); !checked) {
    return fail(checked.error());
  }
  drop_overridden(tree->root, tree->allocator);
  return Access::own(std::move(tree));
}

Json Json::null() {
  return build([](Value&, Allocator&) {});
}
Json Json::boolean(bool value) {
  return build([value](Value& root, Allocator&) { root.SetBool(value); });
}
Json Json::number(std::int64_t value) {
  return build([value](Value& root, Allocator&) { root.SetInt64(value); });
}
Json Json::number(double value) {
  // JSON has no spelling for NaN and infinities.
  if (!std::isfinite(value)) return null();
  return build([value](Value& root, Allocator&) { root.SetDouble(value); });
}
Json Json::string(std::string_view value) {
  return build([value](Value& root, Allocator& allocator) { set_string(root, value, allocator); });
}
Json Json::array(const std::vector<Json>& elements) {
  return build([&](Value& root, Allocator& allocator) {
    root.SetArray().Reserve(static_cast<Size>(elements.size()), allocator);
    for (const Json& element : elements) {
      Value copy;
      Access::copy(copy, element, allocator);
      root.PushBack(copy, allocator);
    }
  });
}
Json Json::detached() const {
  if (!present()) return {};
  return build([&](Value& root, Allocator& allocator) { Access::copy(root, *this, allocator); });
}

Json Json::object(const std::vector<std::pair<std::string, Json>>& members) {
  return build([&](Value& root, Allocator& allocator) {
    root.SetObject();
    for (const auto& [key, member] : members) {
      if (!member.present()) continue;
      Value name;
      set_string(name, key, allocator);
      Value copy;
      Access::copy(copy, member, allocator);
      root.AddMember(name, copy, allocator);
    }
    drop_overridden(root, allocator);
  });
}

Json::Kind Json::kind() const {
  if (!present()) return Kind::kAbsent;
  switch (Access::node(*this).GetType()) {
    case rapidjson::kNullType:
      return Kind::kNull;
    case rapidjson::kFalseType:
    case rapidjson::kTrueType:
      return Kind::kBool;
    case rapidjson::kNumberType:
      return Kind::kNumber;
    case rapidjson::kStringType:
      return Kind::kString;
    case rapidjson::kArrayType:
      return Kind::kArray;
    case rapidjson::kObjectType:
      return Kind::kObject;
  }
  return Kind::kAbsent;
}

bool Json::missing() const {
  return !present() || Access::node(*this).IsNull();
}

Json Json::get(std::string_view key) const {
  if (!is_object()) return Json();
  const Value* const found = find(Access::node(*this), key);
  return found == nullptr ? Json() : Access::child(*this, *found);
}

std::size_t Json::size() const {
  if (is_array()) return Access::node(*this).Size();
  return is_object() ? Access::node(*this).MemberCount() : 0;
}

Json Json::at(std::size_t index) const {
  if (!is_array() || index >= size()) return Json();
  return Access::child(*this, Access::node(*this)[static_cast<Size>(index)]);
}

std::vector<std::pair<std::string_view, Json>> Json::members() const {
  std::vector<std::pair<std::string_view, Json>> result;
  if (!is_object()) return result;
  const Value& object = Access::node(*this);
  result.reserve(object.MemberCount());
  for (Size i = 0; i < object.MemberCount(); ++i) {
    const Member& member = object.MemberBegin()[i];
    result.emplace_back(view(member.name), Access::child(*this, member.value));
  }
  return result;
}

Result<std::string_view> Json::as_string() const {
  if (!is_string()) return wrong_type(*this, "a string");
  return view(Access::node(*this));
}
Result<std::int64_t> Json::as_int() const {
  if (!present() || !Access::node(*this).IsInt64())
    return wrong_type(*this, "an integer of 64 bits");
  return Access::node(*this).GetInt64();
}
Result<bool> Json::as_bool() const {
  if (kind() != Kind::kBool) return wrong_type(*this, "true or false");
  return Access::node(*this).GetBool();
}
Result<std::vector<std::string_view>> Json::as_strings() const {
  if (!is_array()) return wrong_type(*this, "an array of strings");
  const Value& array = Access::node(*this);
  std::vector<std::string_view> strings;
  strings.reserve(array.Size());
  for (Size i = 0; i < array.Size(); ++i) {
    if (!array[i].IsString()) {
      return fail(wrong_type(at(i), "a string").value().with_context(fmt::format("element {}", i)));
    }
    strings.push_back(view(array[i]));
  }
  return strings;
}

std::string_view Json::string_or(std::string_view fallback) const {
  return is_string() ? view(Access::node(*this)) : fallback;
}
std::int64_t Json::int_or(std::int64_t fallback) const {
  return present() && Access::node(*this).IsInt64() ? Access::node(*this).GetInt64() : fallback;
}
bool Json::bool_or(bool fallback) const {
  return kind() == Kind::kBool ? Access::node(*this).GetBool() : fallback;
}

std::string Json::dump() const {
  std::string out;
  if (present())
    append_text(out, Access::node(*this), 0, 0);
  else
    out = "null";
  return out;
}

std::string Json::pretty() const {
  std::string out;
  if (present())
    append_text(out, Access::node(*this), 2, 0);
  else
    out = "null";
  return out;
}

Json Json::with(std::string_view key, const Json& value) const {
  return build([&](Value& root, Allocator& allocator) {
    if (is_object())
      copy_into(root, Access::node(*this), allocator);
    else
      root.SetObject();
    Value* const existing = find(root, key);
    if (!value.present()) {
      Value name;
      set_string(name, key, allocator);
      if (existing != nullptr) root.EraseMember(name);
    } else if (existing != nullptr) {
      Access::copy(*existing, value, allocator);
    } else {
      Value name;
      set_string(name, key, allocator);
      Value copy;
      Access::copy(copy, value, allocator);
      root.AddMember(name, copy, allocator);
    }
  });
}

bool operator==(const Json& a, const Json& b) {
  if (!a.present() || !b.present()) return a.present() == b.present();
  return equal(Access::node(a), Access::node(b));
}

std::string describe(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kAbsent:
      return "nothing";
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kBool:
    case Json::Kind::kNumber:
      return value.dump();
    case Json::Kind::kString:
      return fmt::format("string \"{}\"", value.string_or("").substr(0, 64));
    case Json::Kind::kArray:
      return "an array";
    case Json::Kind::kObject:
      return "an object";
  }
  return "nothing";
}

Json merge_patch(const Json& target, const Json& patch) {
  if (!patch.present()) return target;
  return build([&](Value& root, Allocator& allocator) {
    Access::copy(root, target, allocator);
    merge_into(root, Access::node(patch), allocator);
  });
}

}  // namespace muster::kube
