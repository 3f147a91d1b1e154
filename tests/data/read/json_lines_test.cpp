#include "data/read/json_lines.h"

#include <gtest/gtest.h>

#include "support/byte_tokenizer.h"

namespace brisk {
namespace {

std::vector<std::string> texts_of(const std::string& lines, const std::string& field) {
  std::vector<std::string> texts;
  read_json_lines("a.jsonl", lines, field, 1, [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

std::string text_of(const std::string& line, const std::string& field) {
  const std::vector<std::string> texts = texts_of(line, field);
  return texts.size() == 1 ? texts[0] : fmt::format("{} texts", texts.size());
}

std::string error_of(const std::string& lines, const std::string& field) {
  return user_error_of([&] { texts_of(lines, field); });
}

TEST(JsonLines, ADotGoesIntoAnObject) {
  EXPECT_EQ(text_of(R"({"article": {"body": {"text": "deep"}}})", "article.body.text"), "deep");
  EXPECT_EQ(text_of(R"({"a.b": "plain", "a": {"b": "inner"}})", "a.b"), "plain");  // the key that is there comes first
  EXPECT_EQ(text_of(R"({"a.b": {"c": "mixed"}})", "a.b.c"), "mixed");
}

TEST(JsonLines, InAListANumberChoosesAndAnythingElseJoins) {
  const std::string line = R"({"pages": [{"text": "one"}, {"text": "two"}], "lines": ["x", "y", "z"], "none": []})";
  EXPECT_EQ(text_of(line, "pages.1.text"), "two");
  EXPECT_EQ(text_of(line, "pages.text"), "one\ntwo");
  EXPECT_EQ(text_of(line, "lines"), "x\ny\nz");
  EXPECT_EQ(text_of(line, "lines.2"), "z");
  EXPECT_TRUE(texts_of(line, "none").empty());
  EXPECT_EQ(text_of(R"({"a": [["b", "c"], ["d"]]})", "a"), "b\nc\nd");
}

TEST(JsonLines, NullAndBlanksAreNoText) {
  int64_t without = 0;
  std::vector<std::string> texts;
  without = read_json_lines("a.jsonl", "{\"text\": null}\n\n{\"text\": \" \\n\"}\r\n{\"text\": \"a\"}", "text", 1,
                            [&](std::string_view text) { texts.emplace_back(text); });
  EXPECT_EQ(without, 2);
  EXPECT_EQ(texts, (std::vector<std::string>{"a"}));
}

TEST(JsonLinesErrors, SayWhatIsThereInsteadOfTheField) {
  EXPECT_HAS(error_of("\n{\"title\": \"x\", \"body\": 1}", "text"),
             "a.jsonl: line 2: no field \"text\"; found: body, title; set data.text_field");
  EXPECT_HAS(error_of(R"({"article": {"title": "x", "date": 3}})", "article.body.text"),
             "no field \"article.body.text\"; found in \"article\": date, title");
  EXPECT_HAS(error_of(R"({"article": "all of it"})", "article.text"), "\"article\" holds a string, not an object");
  EXPECT_HAS(error_of(R"({"pages": ["x"]})", "pages.3"), "\"pages\" has 1 elements");
  EXPECT_HAS(error_of(R"({"text": {"a": "b"}})", "text"), "field \"text\": expected a string, found an object");
  std::string wide = "{\"k0\": 0";
  for (int i = 1; i < 50; ++i) wide += fmt::format(", \"k{}\": 0", i);
  EXPECT_HAS(error_of(wide + "}", "text"), "... (50 in all)");
}

TEST(JsonLinesErrors, HoldForWhateverIsInTheFile) {
  EXPECT_HAS(error_of("{\"text\": 1e999}", "text"), "not valid JSON");
  EXPECT_HAS(error_of("{\"text\": \"\\ud800\"}", "text"), "not valid JSON");
  EXPECT_HAS(error_of("{\"text\": " + std::string(100000, '[') + std::string(100000, ']') + "}", "text"),
             "nested more than");
  EXPECT_HAS(error_of(std::string(100000, '['), "text"), "nested more than 100 levels deep");
  EXPECT_LT(error_of("{\"text\": \"" + std::string(100000, 'x'), "text").size(), 1000u);
}

}  // namespace
}  // namespace brisk
