#include "text/models/wordpiece_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "support/load_and_encode.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::contents_of;
using test::ScratchFolder;
using testing::encode;
using testing::load_error;
using Ids = std::vector<TokenId>;

constexpr const char* kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsing\n##ing\n##s\nthe\nun\n##sing\n,\n中\ns\n";

TEST(WordPiece, TakesTheLongestTokenAndThenTheLongestThatGoesOn) {
  const ScratchFolder directory;
  const auto tokenizer = load_tokenizer(directory.write("vocab.txt", kVocabulary));
  EXPECT_EQ(encode(*tokenizer, "Singing, the unsing\n中s"), (Ids{5, 6, 11, 8, 9, 10, 12, 13}));
  EXPECT_EQ(encode(*tokenizer, "sings singx ing"), (Ids{5, 7, 1, 1}));
  EXPECT_EQ(encode(*tokenizer, "[MASK]sing[SEP]"), (Ids{4, 5, 3}));
  EXPECT_EQ(encode(*tokenizer, ""), Ids{});
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 6, 11, 8, 9, 10, 3}), "[CLS] singing, the unsing [SEP]");
  EXPECT_EQ(tokenizer->piece(6), "ing");
  EXPECT_EQ(tokenizer->piece(8), " the");
}

TEST(WordPiece, AWordOfMoreThanAHundredCharactersIsUnknown) {
  const ScratchFolder directory;
  const auto tokenizer = load_tokenizer(directory.write("vocab.txt", kVocabulary));
  std::string word = "s";
  for (int i = 0; i < 99; ++i) word += "s";
  EXPECT_EQ(encode(*tokenizer, word).size(), 100u);
  EXPECT_EQ(encode(*tokenizer, word + "s"), Ids{1});
}

TEST(WordPiece, KnowsItsSpecialTokensAndTemplates) {
  const ScratchFolder directory;
  const auto tokenizer = load_tokenizer(directory.write("vocab.txt", kVocabulary));
  EXPECT_EQ(tokenizer->mask_token(), 4);
  EXPECT_EQ(tokenizer->token_id("##ing"), 6);
  EXPECT_EQ(tokenizer->token_id("[PAD]"), 0);
  EXPECT_EQ(tokenizer->token_id("nothing"), std::nullopt);
  EXPECT_TRUE(tokenizer->continues_word(6));
  EXPECT_FALSE(tokenizer->continues_word(5));
  EXPECT_FALSE(tokenizer->continues_word(2));
  const SequenceTemplate single = tokenizer->single_template(), pair = tokenizer->pair_template();
  EXPECT_EQ(single.prefix, Ids{2});
  EXPECT_EQ(single.suffix, Ids{3});
  EXPECT_EQ(pair.prefix, Ids{2});
  EXPECT_EQ(pair.middle, Ids{3});
  EXPECT_EQ(pair.suffix, Ids{3});
  EXPECT_TRUE(pair.second_type);
  Ids ids;
  tokenizer->encode_with_specials("the", ids);
  EXPECT_EQ(ids, (Ids{2, 8, 3}));
}

// What is cut before it is normalized has to be what is normalized as a whole.
TEST(WordPiece, EncodesPiecesOfTextAsItEncodesTheWhole) {
  const std::string text = testing::prose(20000, 3);
  const std::string_view view = text;
  const auto trained = train_wordpiece({&view, 1}, {.vocab_size = 900, .lowercase = true}).tokenizer;
  nlohmann::json json = nlohmann::json::parse(dynamic_cast<const PipelineTokenizer&>(*trained).to_json());
  // A sequence of one normalizer is the same normalizer, but is applied to the text as a whole.
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", nlohmann::json::array({json["normalizer"]})}};
  const auto whole = tokenizer_from_memory(json.dump(), "whole.json");
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string tricky =
        testing::tricky_text(300, seed) + testing::prose(30, seed) + testing::random_bytes(50, seed);
    EXPECT_EQ(encode(*trained, tricky), encode(*whole, tricky)) << seed;
  }
}

TEST(VocabTxt, FollowsTheConfigBesideIt) {
  const ScratchFolder directory;
  directory.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nThe\nThé\nthé\n<m>\n中\n中s\n");
  const auto ids_with = [&](const char* config) {
    directory.write("tokenizer_config.json", config);
    return encode(*load_tokenizer(directory.path()), "The Thé 中s");
  };
  EXPECT_EQ(ids_with("{}"), (Ids{6, 7, 10, 1})) << "it has capitals, so it is not lowercased";
  EXPECT_EQ(ids_with(R"({"do_lower_case": true})"), (Ids{5, 5, 10, 1}));
  EXPECT_EQ(ids_with(R"({"do_lower_case": true, "strip_accents": false})"), (Ids{5, 8, 10, 1}));
  EXPECT_EQ(ids_with(R"({"do_lower_case": false, "strip_accents": true})"), (Ids{6, 6, 10, 1}));
  EXPECT_EQ(ids_with(R"({"tokenize_chinese_chars": false})"), (Ids{6, 7, 11}));

  directory.write("tokenizer_config.json", R"({"mask_token": {"content": "<m>"}, "unk_token": "[PAD]"})");
  EXPECT_EQ(load_tokenizer(directory.path())->mask_token(), 9);
  EXPECT_EQ(encode(*load_tokenizer(directory.path()), "x<m>"), (Ids{0, 9}));
  std::filesystem::remove(directory / "tokenizer_config.json");
  directory.write("special_tokens_map.json", R"({"mask_token": "<m>"})");
  EXPECT_EQ(load_tokenizer(directory.path())->mask_token(), 9);
}

TEST(VocabTxt, ReadsTokensThatWereAddedToIt) {
  const ScratchFolder directory;
  directory.write("vocab.txt", kVocabulary);
  directory.write("added_tokens.json", R"({"<new>": 14})");
  EXPECT_EQ(encode(*load_tokenizer(directory.path()), "the <NEW>sing"), (Ids{8, 14, 5}));
  directory.write("tokenizer_config.json",
                  R"({"added_tokens_decoder": {"0": {"content": "[PAD]", "special": true},
                      "14": {"content": "<b>", "special": true}, "15": {"content": "<c>"}}})");
  EXPECT_EQ(encode(*load_tokenizer(directory.path()), "<b>the<c>"), (Ids{14, 8, 15}));
  for (const char* wrong : {R"({"added_tokens_decoder": {"17": {"content": "<b>"}}})", R"({"added_tokens_decoder": 3})",
                            R"({"added_tokens_decoder": {"x": {"content": "<b>"}}})",
                            R"({"added_tokens_decoder": {"5": {"content": "<b>"}}})"}) {
    directory.write("tokenizer_config.json", wrong);
    EXPECT_NE(load_error(directory.path()).find("added_tokens_decoder"), std::string::npos) << wrong;
  }
}

TEST(VocabTxt, TakesLinesAsTheLibraryDoes) {
  const ScratchFolder directory;
  // White space behind a token, a token twice, a blank line, Windows' line ends.
  const auto tokenizer =
      load_tokenizer(directory.write("vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP] \r\nthe\r\n\r\nthe\u3000\nsing\n\n"));
  EXPECT_EQ(tokenizer->vocab_size(), 7);
  EXPECT_EQ(encode(*tokenizer, "the sing x"), (Ids{5, 6, 0}));
}

TEST(VocabTxt, SaysWhatIsMissingOrOfAnotherKind) {
  const ScratchFolder directory;
  const auto message = [&](const std::string& content) { return load_error(directory.write("vocab.txt", content)); };
  EXPECT_NE(message("").find("no token \"[UNK]\""), std::string::npos);
  EXPECT_NE(message("[UNK]\n[SEP]\n").find("no token \"[CLS]\""), std::string::npos);
  EXPECT_NE(message("[UNK]\n[CLS]\n").find("\"sep_token\" in tokenizer_config.json"), std::string::npos);
  EXPECT_NE(message("[UNK]\n\xFF\n").find("line 2: byte 1 is not UTF-8"), std::string::npos);
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  EXPECT_NE(message(kVocabulary).find("BertJapaneseTokenizer"), std::string::npos);
  directory.write("tokenizer_config.json", R"({"do_lower_case": "yes"})");
  EXPECT_NE(message(kVocabulary).find("do_lower_case"), std::string::npos);
  directory.write("tokenizer_config.json", R"({"do_lower_case")");
  EXPECT_NE(message(kVocabulary).find("tokenizer_config.json: not valid JSON"), std::string::npos);
}

TEST(WordPiece, IsTheSameWhenSavedAndLoadedFromAFolderOrItsVocabTxt) {
  const ScratchFolder directory;
  directory.write("vocab.txt", kVocabulary);
  const auto tokenizer = load_tokenizer(directory.path());
  save_tokenizer(*tokenizer, directory / "saved/");
  EXPECT_EQ(contents_of(directory / "saved/vocab.txt"), kVocabulary);
  EXPECT_EQ(load_tokenizer(directory / "saved")->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(load_tokenizer(directory / "saved/vocab.txt")->fingerprint(), tokenizer->fingerprint());
  const auto config = nlohmann::json::parse(contents_of(directory / "saved/tokenizer_config.json"));
  EXPECT_EQ(config["cls_token"], "[CLS]");
  EXPECT_EQ(config["mask_token"], "[MASK]");
  EXPECT_EQ(config["pad_token"], "[PAD]");
  EXPECT_EQ(config["model_input_names"].size(), 3u);
  save_tokenizer_folder(*tokenizer, directory.path(), {.token_types = false, .max_length = 512});
  const auto other = nlohmann::json::parse(contents_of(directory / "tokenizer_config.json"));
  EXPECT_EQ(other["model_input_names"], (std::vector<std::string>{"input_ids", "attention_mask"}));
  EXPECT_EQ(other["model_max_length"], 512);
  EXPECT_THROW(save_tokenizer(*tokenizer, directory / "vocab.json"), UserError);
}

TEST(WordPiece, RefusesAModelWithoutItsUnknownToken) {
  nlohmann::json json = {{"model", {{"type", "WordPiece"}, {"unk_token", "u"}, {"vocab", {{"a", 0}, {"u", 1}}}}}};
  EXPECT_EQ(encode(*tokenizer_from_memory(json.dump(), "t.json"), "a"), Ids{0});
  json["model"]["unk_token"] = "v";
  EXPECT_THROW(tokenizer_from_memory(json.dump(), "t.json"), UserError);
}

TEST(WordPiece, APairTemplateThatIsNoneIsRefusedWhenItIsAskedFor) {
  nlohmann::json json = nlohmann::json::parse(R"({"model": {"type": "WordPiece", "unk_token": "u",
      "vocab": {"a": 0, "u": 1}}, "post_processor": {"type": "TemplateProcessing", "special_tokens": {},
      "single": [{"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}})");
  const auto tokenizer = tokenizer_from_memory(json.dump(), "t.json");
  EXPECT_TRUE(tokenizer->single_template().prefix.empty());
  EXPECT_THROW(tokenizer->pair_template(), UserError);
}

}  // namespace
}  // namespace brisk
