#include "base/parse_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using OrderedJson = nlohmann::ordered_json;
using SortedJson = nlohmann::json;
using test::has;

std::string nested(int levels) {
  return std::string(static_cast<size_t>(levels), '[') + std::string(static_cast<size_t>(levels), ']');
}

std::string problem_of(const std::string& text, const JsonLimits& limits = {}) {
  JsonProblem problem;
  const bool discarded = parse_json_or_discard(text, limits, &problem).is_discarded();
  EXPECT_EQ(parse_json_or_discard<SortedJson>(text, limits).is_discarded(), discarded);
  EXPECT_EQ(discarded, !problem.what.empty());
  return problem.what;
}

TEST(ParseJson, ReadsEveryKindOfValueAsNlohmannDoes) {
  for (const std::string text :
       {"null", "true", "-1", "18446744073709551615", "1.5e300", "\"a\\u00e9\\n\\ud83d\\ude00\"", "[]", "{}",
        R"([1, [2, {"a": [3]}], {}])", R"({"b": 1, "a": {"d": null, "c": [false]}, "": ""})", " [1 ] \n"}) {
    EXPECT_EQ(parse_json(text, "a", "b"), OrderedJson::parse(text)) << text;
    EXPECT_EQ(parse_json<SortedJson>(text, "a", "b"), SortedJson::parse(text)) << text;
    EXPECT_EQ(parse_own_json(text).dump(), OrderedJson::parse(text).dump()) << text;
  }
}

TEST(ParseJson, SaysWhereItIsDamaged) {
  EXPECT_EQ(
      test::message_of<UserError>([] { parse_json("{\"a\": 1", "x.json", "fetch it again"); }),
      "x.json: not valid JSON at byte 8 of 7: syntax error while parsing object - unexpected end of input; expected "
      "'}'; fetch it again");
  EXPECT_TRUE(has(problem_of("{} {}"), "unexpected '{'")) << "one value";
  EXPECT_TRUE(has(problem_of("[1e400]"), "number overflow"));
  EXPECT_TRUE(has(problem_of("\"\xff\""), "invalid string"));
  EXPECT_TRUE(has(problem_of(""), "unexpected end of input"));
  EXPECT_TRUE(has(problem_of("// a\n{}"), "invalid literal")) << "no comments";
  EXPECT_LT(problem_of("[\"" + std::string(1 << 20, 'a')).size(), 400u);
}

// nlohmann's own copies and texts of a tree go as deep into the stack as the tree is.
TEST(ParseJson, IsLimitedInDepth) {
  EXPECT_EQ(problem_of(nested(100)), "");
  EXPECT_EQ(problem_of(nested(101)), "objects and lists are nested more than 100 levels deep");
  EXPECT_EQ(problem_of(nested(1'000'000)), "objects and lists are nested more than 100 levels deep");
  EXPECT_EQ(problem_of("[[{\"a\": [1]}]]", {.depth = 3}), "objects and lists are nested more than 3 levels deep");
  EXPECT_EQ(problem_of(std::string(200'000, '{')), problem_of("{{")) << "damaged before it is deep";
}

TEST(ParseJson, IsLimitedInValuesAndKeys) {
  EXPECT_EQ(problem_of("[1, 2, 3]", {.values = 4}), "");
  EXPECT_EQ(problem_of("[1, 2, 3, 4]", {.values = 4}), "more than 4 values");
  EXPECT_EQ(problem_of(R"({"a": 1, "b": 2})", {.keys_of_one = 2}), "");
  EXPECT_EQ(problem_of(R"([{"a": 1, "b": 2, "c": 3}])", {.keys_of_one = 2}), "an object has more than 2 keys");
}

TEST(ParseJson, RefusesAKeyThatIsGivenTwice) {
  EXPECT_EQ(problem_of(R"({"a": 1, "b": {"a": 1}, "a": 2})"), "the key \"a\" is given twice");
  EXPECT_EQ(problem_of(R"([{"x\u001b": 1, "c": 1, "x\u001b": 2}])"), "the key \"x\\x1b\" is given twice");
  EXPECT_EQ(problem_of(R"([{"a": 1}, {"a": 1}])"), "");
}

// Each key was compared with all before it: 42 s for these.
TEST(ParseJson, TakesAHundredThousandKeysInOneGo) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i)
    text += (i > 0 ? "," : "") + ("\"key" + std::to_string(i * 7919 % 100'000)) + "\":1";
  EXPECT_EQ(parse_json(text + "}", "a", "b").size(), 100'000u);
  EXPECT_EQ(parse_json<SortedJson>(text + "}", "a", "b").size(), 100'000u);
  EXPECT_EQ(problem_of(text + ",\"key5\":2}"), "the key \"key5\" is given twice");
}

TEST(ParseJson, OfAJobTakesCommentsAndNamesTheSlip) {
  std::vector<std::string> problems;
  EXPECT_EQ(parse_job_json("// a job\n{\"a\": 1 /* one */}", "job.json", problems), OrderedJson({{"a", 1}}));
  const auto slip = [&](const char* text) {
    return test::message_of<UserError>([&] { parse_job_json(text, "job.json", problems); });
  };
  EXPECT_TRUE(has(slip("{\n \"a\": 1,\n}"), "job.json:3:1: "));
  EXPECT_TRUE(has(slip("{\n \"a\": 1,\n}"), "remove the comma before it"));
  EXPECT_TRUE(has(slip("{\"a\": True}"), "small letters"));
  EXPECT_TRUE(has(slip("{\"a\": 1e999}"), "write a smaller number"));
  EXPECT_TRUE(has(slip(nested(40).c_str()), "job.json: objects and lists are nested more than 32 levels deep"));
  EXPECT_TRUE(problems.empty());
  const OrderedJson first =
      parse_job_json(R"({"m": {"a": 1, "a": 2}, "l": [{"b": 1, "b": 2}], "m": 3})", "j", problems);
  EXPECT_EQ(problems, (std::vector<std::string>{"j: m.a: given twice; remove one of them",
                                                "j: l.b: given twice; remove one of them",
                                                "j: m: given twice; remove one of them"}));
  EXPECT_EQ(first.dump(), R"({"m":{"a":1},"l":[{"b":1}]})");
}

TEST(ParseJson, ShowsAValueInAMessage) {
  EXPECT_EQ(json_in_message(OrderedJson(32)), "32");
  EXPECT_EQ(json_in_message(OrderedJson("a\x1b\"")), "\"a\\x1b\\\"\"");
  EXPECT_EQ(json_in_message(OrderedJson({1})), "a list [...]");
  EXPECT_EQ(json_in_message(SortedJson({{"a", 1}})), "an object {...}");
  EXPECT_EQ(json_in_message(SortedJson::object()), "an object {}");
  EXPECT_EQ(json_in_message(SortedJson(std::string(1 << 20, 'a'))), "\"" + std::string(46, 'a') + "... (1.00 MiB)\"");
}

}  // namespace
}  // namespace brisk
