// What Hugging Face's tokenizers library makes of difficult texts with tokenizers of many kinds
// (scripts/make_tokenizer_golden.py), and what brisk makes of them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "support/scratch_folder.h"
#include "text/models/bpe_tokenizer.h"

namespace brisk {
namespace {

nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(test::contents_of(std::string(BRISK_TOKENIZER_GOLDEN) + "/" + name + ".json"));
}

class Golden : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<std::string> texts_ = golden("texts").get<std::vector<std::string>>();
  nlohmann::json expected_ = golden(std::string(GetParam()) + ".golden");
  std::unique_ptr<Tokenizer> tokenizer_ =
      load_tokenizer(std::string(BRISK_TOKENIZER_GOLDEN) + "/" + GetParam() + ".json");

  void SetUp() override {
    if (expected_["ids"].size() == texts_.size()) return;
    for (const auto& text : golden("more_texts")) texts_.push_back(text.get<std::string>());
  }

  void expect_the_ids(const Tokenizer& tokenizer) const {
    ASSERT_EQ(texts_.size(), expected_["ids"].size());
    for (size_t i = 0; i < texts_.size(); ++i) {
      std::vector<TokenId> ids;
      tokenizer.encode(texts_[i], ids);
      ASSERT_EQ(ids, expected_["ids"][i].get<std::vector<TokenId>>()) << "text " << i << ": " << texts_[i];
    }
  }
};

TEST_P(Golden, EncodesAsTheLibraryDoes) {
  expect_the_ids(*tokenizer_);
  expect_the_ids(*tokenizer_);  // from the cache
}

TEST_P(Golden, PutsTheSpecialsAroundTextsThatTheLibraryPuts) {
  for (size_t i = 0; i < expected_["with_specials"].size(); ++i) {
    std::vector<TokenId> ids;
    tokenizer_->encode_with_specials(texts_[i], ids);
    ASSERT_EQ(ids, expected_["with_specials"][i].get<std::vector<TokenId>>()) << "text " << i << ": " << texts_[i];
  }
}

class PairGolden : public Golden {};

TEST_P(PairGolden, PutsTheSpecialsAndTypesAroundPairsThatTheLibraryPuts) {
  ASSERT_FALSE(expected_["pairs"].empty());
  const SequenceTemplate around = tokenizer_->pair_template();
  for (size_t i = 0; i < expected_["pairs"].size(); ++i) {
    std::vector<TokenId> ids = around.prefix;
    tokenizer_->encode(texts_[20 + i], ids);
    ids.insert(ids.end(), around.middle.begin(), around.middle.end());
    std::vector<int32_t> types(ids.size(), 0);
    tokenizer_->encode(texts_[21 + i], ids);
    ids.insert(ids.end(), around.suffix.begin(), around.suffix.end());
    types.resize(ids.size(), around.second_type ? 1 : 0);
    EXPECT_EQ(ids, expected_["pairs"][i][0].get<std::vector<TokenId>>());
    EXPECT_EQ(types, expected_["pairs"][i][1].get<std::vector<int32_t>>());
  }
}

TEST_P(Golden, DecodesAsTheLibraryDoes) {
  for (size_t i = 0; i < expected_["decoded"].size(); ++i) {
    const auto decoded = expected_["decoded"][i].get<std::string>();
    if (decoded.find("\uFFFD") != std::string::npos) continue;  // the library's word for bytes that brisk gives back
    ASSERT_EQ(tokenizer_->decode(expected_["ids"][i].get<std::vector<TokenId>>()), decoded) << "text " << i;
  }
}

TEST_P(Golden, WritesWhatItRead) {
  const test::ScratchFolder directory;
  tokenizer_->save(directory / "tokenizer.json");
  EXPECT_EQ(nlohmann::json::parse(test::contents_of(directory / "tokenizer.json"))["pre_tokenizer"],
            golden(GetParam())["pre_tokenizer"]);
  const auto again = load_tokenizer(directory / "tokenizer.json");
  EXPECT_EQ(again->fingerprint(), tokenizer_->fingerprint());
  EXPECT_EQ(again->end_of_document(), tokenizer_->end_of_document());
  expect_the_ids(*again);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Golden,
                         ::testing::Values("gpt2", "gpt2_prefix", "llama3", "qwen2", "o200k", "falcon", "llama",
                                           "metaspace_always", "metaspace_first", "bert_like", "suffix", "bert",
                                           "split_removed", "split_merged_with_previous", "split_merged_with_next",
                                           "split_contiguous", "roberta", "word_bpe", "wordpiece_uncased",
                                           "wordpiece_cased", "wordpiece_bare", "wordpiece_lowercase",
                                           "wordpiece_other", "unigram", "unigram_first", "unigram_nmt"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Tokenizers, PairGolden,
                         ::testing::Values("roberta", "wordpiece_uncased", "wordpiece_cased", "wordpiece_bare",
                                           "wordpiece_lowercase", "wordpiece_other", "unigram"),
                         [](const auto& info) { return std::string(info.param); });

TEST(GoldenFiles, SayWhichTokensEndATextByTheirNames) {
  const auto load = [](const char* name) {
    return load_tokenizer(std::string(BRISK_TOKENIZER_GOLDEN) + "/" + name + ".json");
  };
  EXPECT_EQ(load("llama")->start_of_text(), 1);
  EXPECT_EQ(load("llama")->end_of_document(), 2);
  EXPECT_EQ(load("llama3")->start_of_text(), 0);
  EXPECT_EQ(load("llama3")->end_of_document(), 1);
  EXPECT_EQ(load("gpt2")->end_of_document(), 0);
  EXPECT_EQ(load("gpt2")->start_of_text(), std::nullopt);
}

}  // namespace
}  // namespace brisk
