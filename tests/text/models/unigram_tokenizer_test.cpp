// Unigram tokenizers have the ids of the sentencepiece library (scripts/make_unigram_golden.py); those of a tokenizer.json are
// in golden_test.cpp.
#include "text/models/unigram_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/base64.h"
#include "support/load_and_encode.h"
#include "support/scratch_folder.h"
#include "text/unicode/graphemes.h"

namespace brisk {
namespace {

using Ids = std::vector<TokenId>;

std::string golden_path(const std::string& name) { return std::string(BRISK_TOKENIZER_GOLDEN) + "/" + name; }

nlohmann::json unigram_golden(const std::string& name) {
  return nlohmann::json::parse(test::contents_of(golden_path(name)));
}

void expect_the_ids(const Tokenizer& tokenizer, const nlohmann::json& expected) {
  auto texts = unigram_golden("texts.json").get<std::vector<std::string>>();
  for (const auto& text : unigram_golden("more_texts.json")) texts.push_back(text);
  ASSERT_EQ(texts.size(), expected["ids"].size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (expected["ids"][i].is_null()) continue;  // it has the name of a special token in it
    ASSERT_EQ(testing::encode(tokenizer, texts[i]), expected["ids"][i].get<Ids>()) << "text " << i << ": " << texts[i];
  }
}

class Unigram : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Unigram, EncodesAsSentencePieceDoesAlsoWhenSaved) {
  const auto [model, expected] = GetParam();
  const auto tokenizer = load_tokenizer(golden_path(model));
  expect_the_ids(*tokenizer, unigram_golden(expected));
  const test::ScratchFolder folder;
  tokenizer->save(folder / "tokenizer.json");
  const auto again = load_tokenizer(folder / "tokenizer.json");
  EXPECT_EQ(again->fingerprint(), tokenizer->fingerprint());
  expect_the_ids(*again, unigram_golden(expected));
}

INSTANTIATE_TEST_SUITE_P(Models, Unigram,
                         ::testing::Values(std::pair("unigram_plain.model", "unigram_plain.model.golden.json"),
                                           std::pair("unigram_bytes.model", "unigram_bytes.model.golden.json"),
                                           std::pair("unigram_identity.model", "unigram_identity.model.golden.json"),
                                           std::pair("unigram_across.model", "unigram_across.model.golden.json"),
                                           std::pair("t5", "t5/golden.json"),
                                           std::pair("marian", "marian/source.golden.json"),
                                           std::pair("marian/source.spm", "marian/source.golden.json"),
                                           std::pair("marian/target.spm", "marian/target.golden.json")),
                         [](const auto& info) {
                           std::string name = info.param.first;
                           for (char& c : name) c = c == '/' || c == '.' ? '_' : c;
                           return name;
                         });

TEST(UnigramTokenizer, GivesBackTheText) {
  const auto tokenizer = load_tokenizer(golden_path("unigram_bytes.model"));
  for (const char* text : {"The speed of it", "中文 \U0001F600 x", "a<sep>b", ""}) {
    EXPECT_EQ(tokenizer->decode(testing::encode(*tokenizer, text)), text);
  }
  EXPECT_EQ(testing::encode(*tokenizer, "  The   speed "), testing::encode(*tokenizer, "The speed"));
}

TEST(UnigramTokenizer, ReadsT5sFolder) {
  const auto tokenizer = load_tokenizer(golden_path("t5"));
  EXPECT_EQ(tokenizer->vocab_size(), 253);
  EXPECT_EQ(tokenizer->token_id("<extra_id_0>"), 252);
  EXPECT_EQ(tokenizer->token_id("<extra_id_2>"), 250);
  EXPECT_EQ(tokenizer->end_of_document(), 1);
  EXPECT_EQ(tokenizer->start_of_text(), std::nullopt);
  Ids ids, expected = testing::encode(*tokenizer, "a<extra_id_0> b");
  tokenizer->encode_with_specials("a<extra_id_0> b", ids);
  EXPECT_EQ(std::ranges::count(expected, 252), 1);
  expected.push_back(1);
  EXPECT_EQ(ids, expected);
}

TEST(UnigramTokenizer, ReadsMariansFolder) {
  const auto source = load_tokenizer(golden_path("marian")), target = load_tokenizer(golden_path("marian/target.spm"));
  const auto vocabulary = unigram_golden("marian/vocab.json");
  EXPECT_EQ(source->vocab_size(), vocabulary.size());
  EXPECT_EQ(target->vocab_size(), vocabulary.size());
  EXPECT_EQ(source->end_of_document(), 0);
  Ids ids;
  source->encode_with_specials(">>de<< The speed", ids);
  EXPECT_EQ(ids.front(), vocabulary[">>de<<"]);
  EXPECT_EQ(ids.back(), 0);
  EXPECT_EQ(target->decode(testing::encode(*target, "The speed")), "The speed");
}

// The sentencepiece library's ids where two ways have the same sum but for rounding: the score of a user-defined token counts.
TEST(UnigramModel, DecidesBetweenEqualSumsAsSentencePieceDoes) {
  UnigramModelParts parts{.tokens = {"<unk>", "▁", "a", "aa", "xy"},
                          .scores = {0, -2.7F, -3.5F, -6.4F, 0},
                          .unknown = 0,
                          .sentencepiece = SentencePieceRules{.outside_text = {0}, .user_defined = {4}}};
  const UnigramModel model(std::move(parts), "t.model");
  Ids ids;
  model.encode("▁xyaaa", ids);
  EXPECT_EQ(ids, (Ids{1, 4, 2, 3}));
}

TEST(UnigramTokenizer, TakesLinearTime) {
  const auto tokenizer = load_tokenizer(golden_path("unigram_plain.model"));
  const auto json = load_tokenizer(golden_path("unigram.json"));
  for (const std::string& text :
       {std::string(1'000'000, 'e'), std::string(1'000'000, ' '), std::string(1'000'000, '\1')}) {
    EXPECT_LE(testing::encode(*tokenizer, text).size(), text.size() + 1);
    EXPECT_LE(testing::encode(*json, text).size(), text.size() + 1);
  }
}

std::string refusal_of(const std::string& content) {
  return test::message_of<UserError>([&] { tokenizer_from_memory(content, "t.json")->fingerprint(); });
}

TEST(UnigramTokenizer, RefusesModelsThatCannotBe) {
  const auto with = [](const std::string& model) { return R"({"model":{"type":"Unigram",)" + model + "}}"; };
  EXPECT_EQ(refusal_of(with(R"("unk_id":0,"vocab":[["<unk>",0],["a",-1]])")), "");
  EXPECT_TRUE(test::has(refusal_of(with(R"("unk_id":2,"vocab":[["<unk>",0],["a",-1]])")), "\"unk_id\""));
  EXPECT_TRUE(test::has(refusal_of(with(R"("unk_id":0,"vocab":[])")), "\"vocab\" is empty"));
  EXPECT_TRUE(test::has(refusal_of(with(R"("unk_id":0,"vocab":[["a"]])")), "a token and its score"));
  EXPECT_TRUE(test::has(refusal_of(with(R"("unk_id":0,"vocab":[["a",1e999]])")), "t.json"));
  EXPECT_TRUE(
      test::has(refusal_of(with("\"unk_id\":0,\"vocab\":[[\"" + std::string(8000, 'a') + "\",0]]")), "8000 bytes"));
  const auto mapped = [&](const std::string& bytes) {
    return refusal_of(R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":")" + bytes +
                      R"("},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0]]}})");
  };
  EXPECT_TRUE(test::has(mapped("###"), "is not base64"));
  EXPECT_TRUE(test::has(mapped(encode_base64("abcdefgh")), "has no trie of its size"));
  EXPECT_TRUE(test::has(mapped(encode_base64(std::string("\4\0\0\0\0\0\0\0ab", 10))), "has texts without an end"));
  EXPECT_TRUE(test::has(mapped(encode_base64(std::string("\4\0\0\0\5\0\0\x80"
                                                         "a\0",
                                                         10))),
                        "points behind its texts"));
  EXPECT_EQ(mapped(encode_base64(std::string("\4\0\0\0\0\0\0\0a\0", 10))), "");
  const auto no_unknown = tokenizer_from_memory(with(R"("unk_id":null,"vocab":[["a",-1]])"), "t.json");
  EXPECT_EQ(testing::encode(*no_unknown, "aa"), (Ids{0, 0}));
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { testing::encode(*no_unknown, "b"); }), "no token for \"b\""));
}

TEST(UnigramTokenizer, NeverCrashesOnDamagedFiles) {
  const std::string good = test::contents_of(golden_path("unigram_bytes.model"));
  const auto read = [](const std::string& content) {
    return test::message_of<UserError>([&] {
      const auto tokenizer = tokenizer_from_memory(content, "t.model");
      testing::encode(*tokenizer, "The ﬁne \u00A0 speed … e\u0301<sep>中");
    });
  };
  EXPECT_EQ(read(good), "");
  for (size_t size = 1; size < good.size(); size += 211) EXPECT_NE(read(good.substr(0, size)), "") << size;
  uint32_t random = 1;
  const auto next = [&random] { return random = random * 1664525 + 1013904223, random >> 8; };
  for (int round = 0; round < 300; ++round) {
    std::string damaged = good;
    for (int i = 0; i < 3; ++i) damaged[next() % damaged.size()] = static_cast<char>(next());
    read(damaged);
  }
}

TEST(Graphemes, AreThoseOfUnicode) {
  const auto sizes = [](std::string_view text) {
    std::vector<size_t> found;
    for (size_t at = 0; at < text.size();) {
      const size_t end = grapheme_end(text, at);
      found.push_back(end - at);
      at = end;
    }
    return found;
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(sizes("ab"), (Sizes{1, 1}));
  EXPECT_EQ(sizes("e\u0301\u0323x"), (Sizes{5, 1}));
  EXPECT_EQ(sizes("\r\n\n\r"), (Sizes{2, 1, 1}));
  EXPECT_EQ(sizes("\u1112\u1161\u11AB\u1112"), (Sizes{9, 3}));
  EXPECT_EQ(sizes("\U0001F1E9\U0001F1EA\U0001F1EB"), (Sizes{8, 4}));
  EXPECT_EQ(sizes("\U0001F469\u200D\U0001F467\u200D\U0001F466!"), (Sizes{18, 1}));
  EXPECT_EQ(sizes("\u0915\u094D\u0937\u093F"), (Sizes{12}));
  EXPECT_EQ(sizes("\u0600a\xFF\u0301"), (Sizes{3, 1, 2}));
}

TEST(Base64, IsReadAndWritten) {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xFF\x80\x01"}) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
  EXPECT_EQ(encode_base64("foob"), "Zm9vYg==");
  for (const char* bad : {"Zm9vYg=", "Zm9v!g==", "Zm9vYh==", "===="})
    EXPECT_EQ(decode_base64(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace brisk
