#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/runtime.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "text/models/bpe_tokenizer.h"

namespace brisk {
namespace {

TrainedTokenizer train_words(std::string_view text, WordBpeTrainingOptions options) {
  return train_word_bpe({&text, 1}, options);
}

const BpeModelParts& word_model_of(const TrainedTokenizer& trained) {
  return dynamic_cast<const BpeTokenizer&>(*trained.tokenizer).model();
}

nlohmann::json golden_json(const std::string& name) {
  return nlohmann::json::parse(test::contents_of(std::string(BRISK_TOKENIZER_GOLDEN) + "/" + name + ".json"));
}

TEST(WordBpeTraining, LearnsTheFrequentPairsOfCharacters) {
  const TrainedTokenizer trained = train_words("low low low low lot !! !!", {.vocab_size = 30});
  EXPECT_EQ(word_model_of(trained).tokens,
            (std::vector<std::string>{"<pad>", "<unk>", "<eos>", "<mask>", "!", "l", "o", "t", "w", "lo", "low",
                                      "!!"}));  // every other pair occurs once
  EXPECT_EQ(trained.requested, 30);
  EXPECT_EQ(trained.reached, trained.tokenizer->vocab_size());
}

TEST(WordBpeTraining, LearnsWhatTheLibraryLearns) {
  const auto texts = golden_json("texts").get<std::vector<std::string>>();
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const TrainedTokenizer trained = train_word_bpe(views, {.vocab_size = 1400});
  const nlohmann::json expected = golden_json("word_bpe")["model"];
  std::vector<std::string> tokens(expected["vocab"].size());
  for (const auto& [token, id] : expected["vocab"].items()) tokens[id.get<size_t>()] = token;
  const BpeModelParts& model = word_model_of(trained);
  EXPECT_EQ(model.tokens, tokens);
  std::vector<std::array<std::string, 2>> merges;
  for (const Merge& merge : model.merges) merges.push_back({model.tokens[merge.left], model.tokens[merge.right]});
  EXPECT_EQ(merges, (expected["merges"].get<std::vector<std::array<std::string, 2>>>()));
  EXPECT_EQ(trained.tokenizer->fingerprint(),
            load_tokenizer(std::string(BRISK_TOKENIZER_GOLDEN) + "/word_bpe.json")->fingerprint());
}

TEST(WordBpeTraining, LeavesSpacesOutAndKnowsItsSpecialTokens) {
  const TrainedTokenizer trained = train_words("the cat, the cat the cat", {.vocab_size = 100});
  const Tokenizer& tokenizer = *trained.tokenizer;
  std::vector<TokenId> ids;
  tokenizer.encode(" the\n\ncat,<unk>dog", ids);
  std::vector<std::string> pieces;
  for (const TokenId id : ids) pieces.push_back(dynamic_cast<const PipelineTokenizer&>(tokenizer).token(id));
  EXPECT_EQ(pieces, (std::vector<std::string>{"the", "cat", ",", "<unk>", "<unk>", "<unk>", "<unk>"}));
  EXPECT_EQ(tokenizer.decode(std::span(ids).first(3)), "the cat ,");
  EXPECT_EQ(tokenizer.end_of_document(), 2);
  EXPECT_EQ(tokenizer.start_of_text(), std::nullopt) << "a text begins after the end of another, as in training";
}

TEST(WordBpeTraining, IsReadBackAsItWasWritten) {
  const test::ScratchFolder folder;
  const TrainedTokenizer trained =
      train_words(testing::prose(20000, 1) + testing::tricky_text(5000, 2), {.vocab_size = 900});
  trained.tokenizer->save(folder / "tokenizer.json");
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->fingerprint(), trained.tokenizer->fingerprint());
}

TEST(WordBpeTraining, IsTheSameForAnyNumberOfThreads) {
  const std::string text = testing::prose(600000, 1) + testing::tricky_text(50000, 3);  // several pieces
  const int threads_before = thread_pool().size();
  std::vector<uint64_t> fingerprints;
  for (const int threads : {1, 3}) {
    Runtime::current().set_threads(threads);
    fingerprints.push_back(train_words(text, {.vocab_size = 1500}).tokenizer->fingerprint());
  }
  Runtime::current().set_threads(threads_before);
  EXPECT_EQ(fingerprints[0], fingerprints[1]);
}

TEST(WordBpeTraining, HasNoTokenForTheRarestCharactersWhereThereIsNoRoom) {
  EXPECT_EQ(word_model_of(train_words("aaa bb c", {.vocab_size = 6})).tokens,
            (std::vector<std::string>{"<pad>", "<unk>", "<eos>", "<mask>", "a", "b"}));
  EXPECT_THROW(train_words("aaa", {.vocab_size = 4}), UserError);
}

}  // namespace
}  // namespace brisk
