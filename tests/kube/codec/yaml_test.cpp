#include "kube/codec/yaml.hpp"

#include "kube/codec/yaml_scalar.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace muster::kube {
namespace {

std::vector<Json> parsed(std::string_view text) {
  const Result<std::vector<Json>> documents = parse_yaml(text);
  EXPECT_TRUE(documents) << text << "\n" << (documents ? "" : documents.error().message);
  return documents.value_or(std::vector<Json>());
}

std::string one(std::string_view text) {
  const std::vector<Json> documents = parsed(text);
  EXPECT_EQ(documents.size(), 1U) << text;
  return documents.empty() ? "" : documents.front().dump();
}

TEST(YamlScalar, IsTypedAsKubectlTypesIt) {
  const struct {
    const char* text;
    const char* json;  ///< Empty: a string.
  } cases[] = {
      {"", "null"},
      {"~", "null"},
      {"null", "null"},
      {"NULL", "null"},
      {"nULL", ""},
      {"true", "true"},
      {"Yes", "true"},
      {"on", "true"},
      {"y", "true"},
      {"FALSE", "false"},
      {"no", "false"},
      {"off", "false"},
      {"N", "false"},
      {"tRue", ""},
      {"0", "0"},
      {"-0", "0"},
      {"12", "12"},
      {"+12", "12"},
      {"-12", "-12"},
      {"0644", "420"},
      {"0o644", "420"},
      {"089", "89"},
      {"0x1F", "31"},
      {"-0x10", "-16"},
      {"0b101", "5"},
      {"1_000", "1000"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"1.", "1"},
      {"1e3", "1000"},
      {"1e+3", "1000"},
      {"-1.5e-3", "-0.0015"},
      {"1e400", ""},
      {".inf", ""},
      {".nan", ""},
      {"1.2.3", ""},
      {"1e", ""},
      {"-", ""},
      {"+", ""},
      {".", ""},
      {"0x", ""},
      {"0xG", ""},
      {"12a", ""},
      {"500m", ""},
      {"1Gi", ""},
      {"--1", ""},
      {"1:30", ""},
      {"2026-11-29", ""},
      {"0b102", ""},
      {"<<", ""},
      {"text", ""},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "1.8446744073709552e+19"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(resolve_plain_scalar(each.text).value_or(""), each.json) << each.text;
  }
}

TEST(YamlParse, ReadsManifests) {
  EXPECT_EQ(one("a: 1\nb: [x, \"1\", 'true', !!str 5]\nc: {d: ~}\n"),
            R"({"a":1,"b":["x","1","true","5"],"c":{"d":null}})");
  EXPECT_EQ(one("a: |\n  x\n   y\nb: >-\n  x\n  y\n"), R"({"a":"x\n y\n","b":"x y"})");
  EXPECT_EQ(one("1: a\ntrue: b\n~: c\n"), R"({"1":"a","true":"b","null":"c"})");
  EXPECT_EQ(one("a: \"\\u00e9\\n\"\n"), "{\"a\":\"é\\n\"}");
  EXPECT_EQ(one("\xEF\xBB\xBF# c\na: {}\nb: []\nc:\n"), R"({"a":{},"b":[],"c":null})");
  EXPECT_EQ(one(R"({"a": [1, "b\/c"]})"), R"({"a":[1,"b/c"]})");
  EXPECT_EQ(one("{a: 1, b: [2]}"), R"({"a":1,"b":[2]})");
}

TEST(YamlParse, SeparatesDocumentsAndLeavesEmptyOnesOut) {
  EXPECT_EQ(parsed("").size(), 0U);
  EXPECT_EQ(parsed("# nothing\n").size(), 0U);
  EXPECT_EQ(parsed("---\n---\n# x\n---\na: 1\n...\n---\n~\n--- {b: 2}\n").size(), 2U);
  EXPECT_EQ(parsed("a: 1\n---\n# between\n\nb: 2\n").size(), 2U);
}

TEST(YamlParse, ExpandsAliasesAndMergeKeys) {
  EXPECT_EQ(one("a: &x {p: 1}\nb: *x\nc: [*x, *x]\n"),
            R"({"a":{"p":1},"b":{"p":1},"c":[{"p":1},{"p":1}]})");
  EXPECT_EQ(one("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\n"),
            R"({"a":{"p":1,"q":2},"b":{"q":3,"p":1}})");
  EXPECT_EQ(one("- &x {p: 1}\n- &y {p: 2, q: 2}\n- <<: [*x, *y]\n"),
            R"([{"p":1},{"p":2,"q":2},{"p":1,"q":2}])");
  EXPECT_EQ(one("\"<<\": 1\n"), R"({"<<":1})");
  EXPECT_EQ(one("&k key: *k\n"), R"({"key":"key"})");
}

TEST(YamlParse, NamesTheDocumentAndThePlaceOfAnError) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"a: [1, 2\n", "document 1: line 2, column 1: "},
      {"a: 1\n---\nb: c: d\n", "document 2: line 3, column 5: "},
      {"a: 1\na: 2\n", "document 1: line 2, column 1: key \"a\" is given twice"},
      {"a:\n\t- b\n", "document 1: line 2, "},
      {"a: \"x\n", "document 1: line 2, column 1: a quoted text does not end"},
      {"a: 'x", "document 1: line 2, column 1: a quoted text does not end"},
      {"? [a]\n: b\n", "document 1: line 1, column 3: a key must be a scalar"},
      {"a: *x\n", "document 1: line 1, column 4: "},
      {"a: &x [*x]\n", "an alias inside the value it names"},
      {"a: !local b\n", "cannot read \"b\" as !local"},
      {"a: !!int x\n", "cannot read \"x\""},
      {"a: !thing {}\n", "unknown tag"},
      {"<<: 5\n", "must name a mapping"},
      {"- a\nb: c\n", "document 2: line 2, column 1: more text after a complete value"},
      {"{\"a\":1}\n{\"b\":2}\n", "more text after a complete value"},
      {"{\"a\":1,}}", "(as JSON: bad JSON at byte 7"},
      {"a: 1\nb: \"\xFF\"\n", "line 2: the text is not UTF-8"},
      {"a\n--\x10\n# b\n...\n  ,c\x0e", "unexpected text"},
      {"%YAML 9.0\n---\na: 1\n", "document 1: "},
  };
  for (const auto& each : cases) {
    const auto documents = parse_yaml(each.text);
    ASSERT_FALSE(documents) << each.text;
    EXPECT_NE(documents.error().message.find(each.message), std::string::npos)
        << each.text << "\n"
        << documents.error().message;
  }
}

TEST(YamlParse, RefusesWhatWouldBlowUp) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1) + ",";
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += before;
    bomb.back() = ']';
    bomb += "\n";
  }
  EXPECT_EQ(parse_yaml(bomb).error().code, ErrorCode::kTooLarge);

  // Each alias is one level deep, together they are too deep.
  std::string ladder = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i)
    ladder += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
              std::to_string(i - 1) + "]\n";
  EXPECT_EQ(parse_yaml(ladder).error().code, ErrorCode::kTooLarge);

  std::string wide = "base: &b {";
  for (int i = 0; i < 2000; ++i) wide += "key" + std::to_string(i) + ": 1, ";
  wide += "}\nall:\n";
  for (int i = 0; i < 5000; ++i) wide += "- {<<: *b}\n";
  EXPECT_EQ(parse_yaml(wide).error().code, ErrorCode::kTooLarge);

  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string deep;
    for (int i = 0; i < 2000; ++i) deep += open;
    EXPECT_FALSE(parse_yaml(deep)) << open;
  }
}

TEST(YamlWrite, LooksLikeKubectlsOutput) {
  const Json json = Json::parse(R"({
    "apiVersion":"v1","metadata":{"labels":{},"name":"on","annotations":{"a/b":"1","c":"x: y"}},
    "spec":{"list":[{"a":1,"b":[true,null]},[1,[2]],"s",[]],"cpu":"500m","n":"8","t":"2026-11-29T16:00:00Z"}})")
                        .value();
  EXPECT_EQ(to_yaml(json),
            "apiVersion: v1\n"
            "metadata:\n"
            "  labels: {}\n"
            "  name: \"on\"\n"
            "  annotations:\n"
            "    a/b: \"1\"\n"
            "    c: \"x: y\"\n"
            "spec:\n"
            "  list:\n"
            "  - a: 1\n"
            "    b:\n"
            "    - true\n"
            "    - null\n"
            "  - - 1\n"
            "    - - 2\n"
            "  - s\n"
            "  - []\n"
            "  cpu: 500m\n"
            "  \"n\": \"8\"\n"
            "  t: \"2026-11-29T16:00:00Z\"\n");
  EXPECT_EQ(to_yaml(Json::string("a")), "a\n");
  EXPECT_EQ(to_yaml(Json::array({})), "[]\n");
  EXPECT_EQ(to_yaml(Json()), "null\n");
}

TEST(YamlWrite, QuotesStringsThatWouldReadAsSomethingElse) {
  for (const char* text : {"",
                           "null",
                           "~",
                           "yes",
                           "1",
                           "1.5",
                           "0x10",
                           "1e3",
                           "- a",
                           "a: b",
                           "a #b",
                           "a:",
                           " a",
                           "a ",
                           "#a",
                           "&a",
                           "*a",
                           "!a",
                           "|",
                           ">",
                           "%a",
                           "@a",
                           "`a`",
                           "{a}",
                           "[a]",
                           "?",
                           "-",
                           "---",
                           "...",
                           "a\nb",
                           "a\tb",
                           "'a'",
                           "\"a\"",
                           "\\",
                           "2026-11-29",
                           "12:30:45",
                           ".5",
                           "+1",
                           "=",
                           "<<",
                           "\xC2\x85",
                           "a\xE2\x80\xA8z",
                           "\xEF\xBB\xBFx",
                           "\x7f",
                           "\xC2\xA0",
                           "é",
                           "é: x",
                           "0b1",
                           "1_000",
                           ",",
                           "a, b",
                           "trailing\n",
                           "\n",
                           "a'b",
                           "10e",
                           "1E"}) {
    const Json object =
        Json::object({{"k", Json::string(text)}, {text, Json::array({Json::string(text)})}});
    const std::vector<Json> again = parsed(to_yaml(object));
    ASSERT_EQ(again.size(), 1U) << text;
    EXPECT_EQ(again.front(), object) << to_yaml(object);
  }
}

TEST(YamlWrite, HasAFormForLongKeys) {
  const std::string key(1100, 'k');
  const Json list = Json::array({Json::string("x"), Json::object({{key, Json::null()}})});
  const Json object = Json::object({{key, list},
                                    {key + "2", Json::object({{"a", list}})},
                                    {key + ": 3", Json()},
                                    {key + ": 4", Json::string("y")}});
  EXPECT_EQ(parsed(to_yaml(object)), std::vector<Json>{object});
}

TEST(YamlProperty, AnyStringSurvives) {
  EXPECT_TRUE(rc::check([](std::int64_t number) {
    const std::string text = *rc::gen::container<std::string>(rc::gen::element<char>(
        'a', 'B', '1', '0', ' ', ':', '-', '#', '\n', '\t', '"', '\'', '\\', ',', '[', '{', '!',
        '&', '*', '.', 'e', 'x', '_', '/', '~', '<', '\x01'));
    const Json object = Json::object({{"n", Json::number(number)},
                                      {"k" + text, Json::string(text)},
                                      {"l", Json::array({Json::string(text)})}});
    const auto again = parse_yaml(to_yaml(object));
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->size() == 1U);
    RC_ASSERT(again->front() == object);
  }));
}

}  // namespace
}  // namespace muster::kube
