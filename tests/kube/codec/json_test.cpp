#include "kube/codec/json.hpp"

#include "kube/codec/json_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <string>

namespace muster::kube {
namespace {

Json parsed(std::string_view text) {
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json.value_or(Json());
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(JsonParse, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "tru",
                           "{",
                           "}",
                           "[1,]",
                           "{\"a\":}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "'a'",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "\"a",
                           "\"\\x\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udf60\"",
                           "{\"\\uDC00\":1}",
                           "\"a\nb\"",
                           "1 2",
                           "{} x",
                           "[1] ]",
                           "\xEF\xBB\xBF{}",
                           "NaN",
                           "Infinity",
                           "1e999",
                           "// c\n1",
                           "\"\xFF\"",
                           "\"\xC0\x80\"",
                           "\"\xED\xA0\x80\"",
                           "\xE2\x82"}) {
    const Result<Json> json = Json::parse(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(json.error().message.find("bad JSON at byte"), std::string::npos) << text;
  }
}

TEST(JsonParse, TakesNoNulByteForTheEnd) {
  EXPECT_FALSE(Json::parse(std::string_view("{}\0", 3)));
  EXPECT_FALSE(Json::parse(std::string_view("{}\0garbage", 10)));
  EXPECT_FALSE(Json::parse(std::string_view("\"a\0b\"", 5)));
  EXPECT_FALSE(Json::parse(std::string_view("\0", 1)));
  EXPECT_EQ(parsed(R"("a\u0000b")").string_or(""), std::string_view("a\0b", 3));
}

TEST(JsonParse, TakesNoControlCharacterInAString) {
  for (int byte = 0; byte < 0x20; ++byte) {
    const std::string inside =
        std::string(40, 'a') + static_cast<char>(byte) + std::string(40, 'b');
    EXPECT_FALSE(Json::parse("\"" + inside + "\"")) << byte;
    EXPECT_EQ(parsed(Json::string(inside).dump()), Json::string(inside)) << byte;
  }
}

TEST(JsonParse, LimitsSizeAndDepth) {
  const std::string deep = repeated("[", 64) + repeated("]", 64);
  EXPECT_TRUE(Json::parse(deep));
  const Result<Json> deeper = Json::parse("[" + deep + "]");
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(Json::parse(repeated("{\"a\":[", 1'000'000)).error().code, ErrorCode::kTooLarge);
  // Siblings do not add up.
  EXPECT_TRUE(Json::parse("[" + repeated("[[]],", 100) + "[]]"));
  EXPECT_EQ(Json::parse("[1,2,3]", {.bytes = 6, .depth = 64}).error().code, ErrorCode::kTooLarge);
  EXPECT_TRUE(Json::parse("[1,2,3]", {.bytes = 7, .depth = 1}));
}

TEST(JsonParse, LetsTheLastOfEqualKeysWin) {
  EXPECT_EQ(parsed(R"({"a":1,"b":2,"a":3})").dump(), R"({"b":2,"a":3})");
  EXPECT_EQ(parsed(R"({"a":{"x":1,"x":2},"a":[{"y":1,"y":null}]})").dump(),
            R"({"a":[{"y":null}]})");
  // Many members take another way to the same result.
  std::string text = "{";
  for (int i = 0; i < 50; ++i)
    text += "\"k" + std::to_string(i % 20) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const Json json = parsed(text);
  EXPECT_EQ(json.size(), 20U);
  EXPECT_EQ(json.get("k3").int_or(-1), 43);
  EXPECT_EQ(json.get("k15").int_or(-1), 35);
}

TEST(JsonParse, KeepsNumbersAsFarAsTheyGo) {
  EXPECT_EQ(parsed("9223372036854775807").int_or(0), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parsed("-9223372036854775808").int_or(0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parsed("9223372036854775808").dump(), "9223372036854775808");
  EXPECT_FALSE(parsed("9223372036854775808").as_int());
  EXPECT_FALSE(parsed("1e3").as_int());
  EXPECT_FALSE(parsed("5.0").as_int());
  EXPECT_EQ(parsed("0.1").dump(), "0.1");
  EXPECT_EQ(parsed("[0,-0,0.0,0e9,-1,10]").dump(), "[0,0,0.0,0.0,-1,10]");
  EXPECT_EQ(parsed("0." + std::string(2000, '0') + "e99").dump(), "0.0");
  EXPECT_EQ(parsed("2.2250738585072014e-308").dump(), "2.2250738585072014e-308");
  EXPECT_FALSE(Json::parse("1e-400"));
  EXPECT_EQ(parsed("123456789012345678901234567890").kind(), Json::Kind::kNumber);
}

TEST(JsonGet, IsTotal) {
  const Json json = parsed(R"({"a":{"b":[10,"x",null,true]},"":7})");
  EXPECT_EQ(json.get("a", "b").at(0).int_or(0), 10);
  EXPECT_EQ(json.get("a", "b").at(1).string_or(""), "x");
  EXPECT_EQ(json.get("").int_or(0), 7);
  EXPECT_TRUE(json.get("a", "b").at(2).missing());
  EXPECT_TRUE(json.get("a", "b").at(2).present());
  EXPECT_FALSE(json.get("a", "b").at(4).present());
  EXPECT_FALSE(json.get("a", "x", "y", "z").present());
  EXPECT_FALSE(json.get("a").at(0).present());
  EXPECT_FALSE(json.get("a", "b").get("0").present());
  EXPECT_FALSE(Json().get("a").present());
  EXPECT_EQ(Json().size(), 0U);
  EXPECT_TRUE(Json().members().empty());
  EXPECT_EQ(Json().dump(), "null");
  EXPECT_EQ(json.members().size(), 2U);
  EXPECT_EQ(json.members()[1].first, "");
}

TEST(JsonGet, SaysWhatCameAndWhatWasWanted) {
  EXPECT_EQ(parsed("\"5\"").as_int().error().message,
            "got string \"5\", want an integer of 64 bits");
  EXPECT_EQ(parsed("[]").as_string().error().message, "got an array, want a string");
  EXPECT_EQ(parsed("3").as_bool().error().message, "got 3, want true or false");
  EXPECT_EQ(parsed("null").as_string().error().message, "got null, want a string");
  EXPECT_EQ(Json().as_string().error().message, "got nothing, want a string");
}

TEST(JsonGet, OutlivesTheValueItCameFrom) {
  Json inner;
  {
    const Json outer = parsed(R"({"a":{"text":"longer than any small string could be"}})");
    inner = outer.get("a");
  }
  EXPECT_EQ(inner.get("text").string_or(""), "longer than any small string could be");
}

TEST(JsonBuild, CopiesDeeplyAndLeavesAbsentMembersOut) {
  Json built;
  {
    const Json source = parsed(R"({"long":"a text that is kept in the parsed bytes","n":[1,{}]})");
    built = Json::object({{"source", source.get("long")},
                          {"gone", Json()},
                          {"list", Json::array({source.get("n"), Json(), Json::null()})}});
  }
  EXPECT_EQ(built.dump(),
            R"({"source":"a text that is kept in the parsed bytes","list":[[1,{}],null,null]})");
}

TEST(JsonBuild, SpellsWhatJsonCannotHoldAsNull) {
  EXPECT_EQ(Json::number(std::nan("")).dump(), "null");
  EXPECT_EQ(Json::number(INFINITY).dump(), "null");
  EXPECT_EQ(Json::number(0.5).dump(), "0.5");
  EXPECT_EQ(Json::string("").dump(), "\"\"");
  EXPECT_EQ(Json::object({{"a", Json::boolean(true)}, {"a", Json::boolean(false)}}).dump(),
            R"({"a":false})");
}

TEST(JsonWith, SetsReplacesAndRemoves) {
  const Json json = parsed(R"({"a":1,"b":2})");
  EXPECT_EQ(json.with("a", Json::string("x")).dump(), R"({"a":"x","b":2})");
  EXPECT_EQ(json.with("c", Json::null()).dump(), R"({"a":1,"b":2,"c":null})");
  EXPECT_EQ(json.with("a", Json()).dump(), R"({"b":2})");
  EXPECT_EQ(json.with("c", Json()).dump(), R"({"a":1,"b":2})");
  EXPECT_EQ(Json().with("a", Json::number(std::int64_t{1})).dump(), R"({"a":1})");
  EXPECT_EQ(parsed("[1]").with("a", json).dump(), R"({"a":{"a":1,"b":2}})");
  EXPECT_EQ(json.dump(), R"({"a":1,"b":2})");
}

TEST(JsonEqual, DoesNotMindTheOrderOfMembers) {
  EXPECT_EQ(parsed(R"({"a":[1,{"x":"y"}],"b":null})"), parsed(R"({"b":null,"a":[1,{"x":"y"}]})"));
  EXPECT_FALSE(parsed("[1,2]") == parsed("[2,1]"));
  EXPECT_FALSE(parsed(R"({"a":1})") == parsed(R"({"a":1,"b":1})"));
  EXPECT_FALSE(parsed(R"({"a":1})") == parsed(R"({"b":1})"));
  EXPECT_EQ(parsed("1"), parsed("1.0"));
  EXPECT_FALSE(parsed("9223372036854775807") == parsed("9223372036854775806"));
  EXPECT_FALSE(parsed("true") == parsed("false"));
  EXPECT_FALSE(parsed("1") == parsed("\"1\""));
  EXPECT_FALSE(parsed("null") == Json());
  EXPECT_EQ(Json(), Json());
}

TEST(MergePatch, FollowsTheExamplesOfRfc7386) {
  const struct {
    const char* target;
    const char* patch;
    const char* result;
  } cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", "null", "null"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(merge_patch(parsed(each.target), parsed(each.patch)).dump(), each.result)
        << each.target << " + " << each.patch;
  }
  EXPECT_EQ(merge_patch(parsed("{}"), Json()).dump(), "{}");
  EXPECT_EQ(merge_patch(Json(), parsed(R"({"a":1})")).dump(), R"({"a":1})");
}

TEST(JsonText, EscapesWhatMustBeEscaped) {
  std::string out;
  append_json_string(out, std::string_view("a\"\\\n\r\t\b\0\x1f\x7f/<é", 14));
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\r\\t\\u0008\\u0000\\u001f\x7f/<é\"");
}

TEST(JsonText, KnowsWellFormedUtf8) {
  const struct {
    std::string_view text;
    std::size_t valid;
  } cases[] = {
      {"", 0},
      {"plain text of more than eight bytes", 35},
      {"12345678\xFF", 8},
      {"1234567\xC3\xA9", 9},
      {"\xC3", 0},
      {"\xC3(", 0},
      {"\xE0\x9F\x80", 0},  // Overlong.
      {"\xE0\xA0\x80", 3},
      {"\xED\x9F\xBF", 3},
      {"\xED\xA0\x80", 0},      // A surrogate.
      {"\xF0\x8F\xBF\xBF", 0},  // Overlong.
      {"\xF0\x9F\x98\x80", 4},
      {"\xF4\x8F\xBF\xBF", 4},
      {"\xF4\x90\x80\x80", 0},  // Above U+10FFFF.
      {"\xF5\x80\x80\x80", 0},
      {"\x80", 0},
      {"a\xF0\x9F\x98", 1},
  };
  for (const auto& each : cases) EXPECT_EQ(valid_utf8_prefix(each.text), each.valid) << each.text;
}

/// Any JSON value, a few levels deep.
rc::Gen<Json> any_json(int depth) {
  const auto leaf = rc::gen::oneOf(
      rc::gen::just(Json::null()),
      rc::gen::map(rc::gen::arbitrary<bool>(), [](bool b) { return Json::boolean(b); }),
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(),
                   [](std::int64_t i) { return Json::number(i); }),
      rc::gen::map(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)),
                   [](const std::string& s) { return Json::string(s); }));
  if (depth == 0) return leaf;
  const auto inner = any_json(depth - 1);
  return rc::gen::oneOf(
      leaf,
      rc::gen::map(rc::gen::container<std::vector<Json>>(inner),
                   [](const std::vector<Json>& v) { return Json::array(v); }),
      rc::gen::map(rc::gen::container<std::vector<std::pair<std::string, Json>>>(rc::gen::pair(
                       rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)), inner)),
                   [](const auto& members) { return Json::object(members); }));
}

TEST(JsonPretty, IndentsByTwo) {
  EXPECT_EQ(parsed(R"({"a":[1,{"b":[]}],"c":{}})").pretty(),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
  EXPECT_EQ(Json().pretty(), "null");
}

TEST(JsonProperty, TextIsReadBackAsTheSameValue) {
  EXPECT_TRUE(rc::check([] {
    const Json json = *rc::gen::resize(8, any_json(2));
    const Result<Json> again = Json::parse(json.dump());
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == json);
    RC_ASSERT(again->dump() == json.dump());
    const Result<Json> indented = Json::parse(json.pretty());
    RC_ASSERT(indented.has_value());
    RC_ASSERT(*indented == json);
  }));
}

}  // namespace
}  // namespace muster::kube
