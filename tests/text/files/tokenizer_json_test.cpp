#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "support/scratch_folder.h"
#include "text/models/bpe_tokenizer.h"

namespace brisk {
namespace {

nlohmann::json small() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<x>", "special": true, "normalized": false},
                     {"id": 0, "content": "a", "special": false, "normalized": true, "single_word": true}],
    "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": "u", "vocab": {"a": 0, "b": 1, "ab": 2, "u": 3}, "merges": ["a b"]}})");
}

std::string json_error_of(std::string_view content) {
  return test::message_of<UserError>([&] {
    const auto tokenizer = tokenizer_from_memory(content, "t.json");
    std::vector<TokenId> ids;
    tokenizer->encode("A ab <x> \xFF zz", ids);
    tokenizer->encode_with_specials("b", ids);
    tokenizer->decode(ids);
  });
}

std::vector<TokenId> encode(const nlohmann::json& json, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer_from_memory(json.dump(), "t.json")->encode(text, ids);
  return ids;
}

TEST(TokenizerJson, ReadsBothSpellingsOfMerges) {
  nlohmann::json json = small();
  EXPECT_EQ(encode(json, "AB abz<x>"), (std::vector<TokenId>{2, 2, 3, 4}));
  json["model"]["merges"] = nlohmann::json::parse(R"([["a", "b"]])");
  EXPECT_EQ(encode(json, "AB abz<x>"), (std::vector<TokenId>{2, 2, 3, 4}));
}

TEST(TokenizerJson, SingleWordsCountOnlyWhenTheyStandAlone) {
  EXPECT_EQ(encode(small(), "a ab ba"), (std::vector<TokenId>{0, 2, 1, 0}));
}

TEST(TokenizerJson, NamesWhatItCannotUse) {
  const std::vector<std::pair<std::function<void(nlohmann::json&)>, const char*>> damages = {
      {[](auto& j) { j["model"]["type"] = "WordLevel"; }, "model: the type \"WordLevel\""},
      {[](auto& j) { j["normalizer"]["type"] = "Mystery"; }, "normalizer: the type \"Mystery\""},
      {[](auto& j) { j["pre_tokenizer"]["type"] = "UnicodeScripts"; }, "pre_tokenizer: the type \"UnicodeScripts\""},
      {[](auto& j) {
         j["decoder"] = {{"type", "CTC"}};
       },
       "decoder: the type \"CTC\""},
      {[](auto& j) {
         j["post_processor"] = {{"type", "Other"}};
       },
       "post_processor: the type \"Other\""},
      {[](auto& j) { j["normalizer"] = 5; }, "normalizer: found 5"},
      {[](auto& j) {
         j["normalizer"] = {{"type", 5}};
       },
       "\"type\": found 5"},
      {[](auto& j) {
         j["normalizer"] = {{"type", "Sequence"}};
       },
       "\"normalizers\": found nothing"},
      {[](auto& j) {
         j["normalizer"] = {{"type", "Replace"}, {"content", ""}};
       },
       "\"pattern\": found nothing"},
      {[](auto& j) {
         j["pre_tokenizer"] = {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "(?<n>a)"}}}};
       },
       "the regular expression \"(?<n>a)\""},
      {[](auto& j) {
         j["pre_tokenizer"] = {{"type", "Split"}, {"behavior", "x"}, {"pattern", {{"String", "a"}}}};
       },
       "\"behavior\": found \"x\""},
      {[](auto& j) {
         j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "ab"}};
       },
       "\"replacement\""},
      {[](auto& j) { j["model"].erase("vocab"); }, "\"vocab\": found nothing"},
      {[](auto& j) { j["model"]["vocab"] = {"a"}; }, "\"vocab\": found an array"},
      {[](auto& j) { j["model"]["vocab"]["b"] = -1; }, "the id of \"b\" is -1"},
      {[](auto& j) { j["model"]["vocab"]["b"] = 0.5; }, "the id of \"b\" is 0.5"},
      {[](auto& j) { j["model"]["vocab"]["b"] = 4000000000; }, "the id of \"b\" is 4000000000"},
      {[](auto& j) { j["model"]["vocab"]["b"] = 0; }, "belongs to both"},
      {[](auto& j) { j["model"]["merges"] = {"a c"}; }, "\"merges\"[0]: the merge \"a c\" needs the token \"c\""},
      {[](auto& j) { j["model"]["merges"] = {"b a"}; }, "needs the token \"ba\""},
      {[](auto& j) {
         j["model"]["merges"] = {"a b", "a b"};
       },
       "occurs twice"},
      {[](auto& j) { j["model"]["merges"] = {"ab"}; }, "expected two tokens"},
      {[](auto& j) { j["model"]["merges"] = {7}; }, "\"merges\"[0]: found 7"},
      {[](auto& j) { j["model"]["merges"] = nlohmann::json::parse(R"([["a", 7]])"); }, "\"merges\"[0]: found an array"},
      {[](auto& j) { j["model"]["unk_token"] = "?"; }, "\"unk_token\" is \"?\""},
      {[](auto& j) { j["model"]["dropout"] = 0.1; }, "\"dropout\" is 0.1"},
      {[](auto& j) { j["model"]["fuse_unk"] = "yes"; }, "\"fuse_unk\": found \"yes\""},
      {[](auto& j) { j["added_tokens"][0]["id"] = 9; }, "has the id 9, where the tokenizers library would give it 4"},
      {[](auto& j) { j["added_tokens"][1]["id"] = 9; }, "would give it 0"},
      {[](auto& j) { j["added_tokens"][0]["id"] = -9; }, "\"id\": found -9"},
      {[](auto& j) { j["added_tokens"][0].erase("content"); }, "\"content\": found nothing"},
      {[](auto& j) { j["added_tokens"] = "x"; }, "\"added_tokens\": found \"x\""},
      {[](auto& j) { j["added_tokens"][0] = "x"; }, "found \"x\""},
      {[](auto& j) { j["model"] = nullptr; }, "\"model\": found null"},
  };
  EXPECT_EQ(json_error_of(small().dump()), "");
  for (const auto& [damage, expected] : damages) {
    nlohmann::json damaged = small();
    damage(damaged);
    const std::string message = json_error_of(damaged.dump());
    EXPECT_NE(message.find(expected), std::string::npos) << "expected " << expected << "\nfound " << message;
    EXPECT_TRUE(message.starts_with("t.json")) << message;
  }
}

TEST(TokenizerJson, RefusesDeepNesting) {
  std::string nested(100000, '[');
  EXPECT_NE(json_error_of("{\"model\": " + nested), "");
  nlohmann::json json = small();
  for (int i = 0; i < 1000; ++i) {
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", nlohmann::json::array({json["normalizer"]})}};
  }
  EXPECT_NE(json_error_of(json.dump()).find("nested"), std::string::npos);
  json = small();
  json["pre_tokenizer"] = {
      {"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", std::string(60000, '(')}}}};
  EXPECT_NE(json_error_of(json.dump()).find("nested"), std::string::npos);
}

TEST(TokenizerJson, RefusesANormalizerThatMakesTextsEndless) {
  nlohmann::json json = small();
  const nlohmann::json doubles = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaa"}};
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::vector<nlohmann::json>(40, doubles)}};
  json["added_tokens"] = nlohmann::json::array();
  EXPECT_NE(json_error_of(json.dump()).find("normalizer makes"), std::string::npos);
}

TEST(TokenizerJson, RefusesADecoderThatMakesTextsEndless) {
  nlohmann::json json = small();
  const nlohmann::json doubles = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaa"}};
  json["decoder"] = {{"type", "Sequence"}, {"decoders", std::vector<nlohmann::json>(40, doubles)}};
  EXPECT_NE(json_error_of(json.dump()).find("decoder makes"), std::string::npos);
  const auto tokenizer = tokenizer_from_memory(json.dump(), "t.json");
  EXPECT_THROW(tokenizer->piece(2), UserError);
  EXPECT_EQ(tokenizer->piece(1), "b");
}

TEST(TokenizerJson, RefusesOneReplacementThatMakesTextsEndless) {
  nlohmann::json json = small();
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", ""}}}, {"content", std::string(100'000, 'b')}};
  json["added_tokens"] = nlohmann::json::array();
  EXPECT_NE(json_error_of(json.dump()).find("rules make"), std::string::npos);
}

TEST(TokenizerJson, RefusesMoreStepsThanAStackHolds) {
  for (const char* component : {"normalizer", "pre_tokenizer"}) {
    nlohmann::json json = small();
    const nlohmann::json step = {{"type", component == std::string("normalizer") ? "NFC" : "Whitespace"}};
    json[component] = {{"type", "Sequence"},
                       {component == std::string("normalizer") ? "normalizers" : "pretokenizers",
                        std::vector<nlohmann::json>(100'000, step)}};
    EXPECT_NE(json_error_of(json.dump()).find("more than 100 steps"), std::string::npos) << component;
  }
}

TEST(TokenizerJson, RefusesSpecialsWithoutEndAroundAText) {
  nlohmann::json json = small();
  const nlohmann::json special = {{"SpecialToken", {{"id", "<x>"}, {"type_id", 0}}}};
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", std::vector<nlohmann::json>(1000, special)},
      {"special_tokens", {{"<x>", {{"id", "<x>"}, {"tokens", std::vector<std::string>(1000, "<x>")}}}}}};
  EXPECT_NE(json_error_of(json.dump()).find("more than 100 special tokens"), std::string::npos);
  const nlohmann::json bert = {{"type", "BertProcessing"}, {"cls", {"<x>", 4}}, {"sep", {"<x>", 4}}};
  json["post_processor"] = {{"type", "Sequence"}, {"processors", std::vector<nlohmann::json>(1000, bert)}};
  EXPECT_NE(json_error_of(json.dump()).find("more than 100 special tokens"), std::string::npos);
}

TEST(TokenizerJson, WithATokenOfNoTextSavedAndReadIsTheSame) {
  nlohmann::json json = small();
  json["model"]["vocab"][""] = 9;
  const auto tokenizer = tokenizer_from_memory(json.dump(), "t.json");
  const std::string saved = dynamic_cast<const BpeTokenizer&>(*tokenizer).to_json();
  EXPECT_EQ(tokenizer_from_memory(saved, "t.json")->fingerprint(), tokenizer->fingerprint());
}

TEST(TokenizerJson, NestedDeeperThanAStackIsRefused) {
  nlohmann::json json = small();
  std::string text = json.dump();
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  text.replace(text.find("null"), 4, nested);
  EXPECT_NE(json_error_of(text).find("nested more than 100 levels deep"), std::string::npos);
  json["model"]["vocab"]["\"[\\[[["] = 4;  // brackets in a text are no nesting
  json["added_tokens"][0]["id"] = 5;
  EXPECT_EQ(json_error_of(json.dump()), "");
}

TEST(TokenizerJson, NeverCrashesOnDamagedFiles) {
  nlohmann::json json = small();
  json["pre_tokenizer"] = {{"type", "Split"},
                           {"behavior", "MergedWithNext"},
                           {"pattern", {{"Regex", "(?i:'s|[^a-c\\d&&\\w]{1,3}+)|\\p{L}*?b(?=a|$)|(?<!x)\\s+"}}}};
  json["post_processor"] = nlohmann::json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}},
          {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
          "special_tokens": {"<x>": {"id": "<x>", "ids": [4], "tokens": ["<x>"]}}})");
  json["decoder"] = nlohmann::json::parse(R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  const std::string good = json.dump();
  ASSERT_EQ(json_error_of(good), "");
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = good;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged[at] = static_cast<char>(random() & 0xFF); break;
        case 1: damaged[at] = "\"{}[]:,0(?*+|\\"[random() % 14]; break;
        case 2: damaged.erase(at, random() % 9); break;
        default: damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 20));
      }
    }
    json_error_of(damaged);  // may still be a valid file; must not crash
  }
}

}  // namespace
}  // namespace brisk
