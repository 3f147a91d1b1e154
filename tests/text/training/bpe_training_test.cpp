#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/runtime.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "text/models/bpe_tokenizer.h"
#include "text/pipeline/words.h"
#include "text/tokenizer.h"

namespace brisk {
namespace {

TrainedTokenizer train(std::string_view text, int64_t vocab_size, int64_t min_pair_count = 2) {
  return train_bpe({&text, 1}, {.vocab_size = vocab_size, .min_pair_count = min_pair_count});
}

std::vector<std::string> learned_pieces(const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (TokenId id = 256; id + 1 < tokenizer.vocab_size(); ++id) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

std::vector<std::pair<TokenId, TokenId>> merges_of(const Tokenizer& tokenizer) {
  std::vector<std::pair<TokenId, TokenId>> pairs;
  for (const Merge& merge : dynamic_cast<const BpeTokenizer&>(tokenizer).model().merges) {
    pairs.emplace_back(merge.left, merge.right);
  }
  return pairs;
}

// BPE as it is explained: count all pairs, join the most frequent one everywhere, count again.
std::vector<std::pair<TokenId, TokenId>> learn_slowly(std::string_view text, int64_t vocab_size,
                                                      int64_t min_pair_count) {
  std::map<std::vector<TokenId>, int64_t> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = word_end(text, begin);
    std::vector<TokenId> word;
    for (; begin < end; ++begin) word.push_back(static_cast<unsigned char>(text[begin]));
    ++words[word];
  }
  std::vector<std::pair<TokenId, TokenId>> merges;
  for (TokenId result = 256; result < vocab_size - 1; ++result) {
    std::map<std::pair<TokenId, TokenId>, int64_t> counts;
    for (const auto& [word, count] : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += count;
    }
    // The first of the largest: std::map is in the order of the ids.
    const auto best = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    if (best == counts.end() || best->second < min_pair_count) break;
    merges.push_back(best->first);
    std::map<std::vector<TokenId>, int64_t> joined_words;
    for (const auto& [word, count] : words) {
      std::vector<TokenId> joined;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool joins = i + 1 < word.size() && std::pair(word[i], word[i + 1]) == best->first;
        joined.push_back(joins ? result : word[i]);
        if (joins) ++i;
      }
      joined_words[joined] += count;
    }
    words = std::move(joined_words);
  }
  return merges;
}

TEST(BpeTraining, LearnsTheMergesOfTheTextbookExample) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += "low\n";
  for (int i = 0; i < 2; ++i) text += "lower\n";
  for (int i = 0; i < 6; ++i) text += "newest\n";
  for (int i = 0; i < 3; ++i) text += "widest\n";
  const TrainedTokenizer trained = train(text, 257 + 6);
  // es and st occur 9 times, es has the smaller ids; then est; then lo before ow, both 7 times.
  EXPECT_EQ(learned_pieces(*trained.tokenizer), (std::vector<std::string>{"es", "est", "lo", "low", "ew", "new"}));
  EXPECT_EQ(trained.reached, 263);
  EXPECT_EQ(trained.tokenizer->vocab_size(), 263);
  EXPECT_EQ(trained.tokenizer->end_of_document(), 262);
  EXPECT_EQ(trained.tokenizer->piece(262), "<|endoftext|>");
  std::vector<TokenId> ids;
  trained.tokenizer->encode("lowest", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{259, 257}));
}

TEST(BpeTraining, AgreesWithTheSlowMethod) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    std::string text = testing::prose(400, seed) + testing::tricky_text(400, seed);
    const TrainedTokenizer trained = train(text, 257 + 200);
    EXPECT_EQ(merges_of(*trained.tokenizer), learn_slowly(text, 257 + 200, 2)) << "seed " << seed;
  }
}

TEST(BpeTraining, AgreesWithTheSlowMethodOnRunsOfOneSymbol) {
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string(1 + random() % 19, "ab"[random() % 2]) + (i % 3 ? "" : " ");
  const TrainedTokenizer trained = train(text, 257 + 100);
  EXPECT_EQ(merges_of(*trained.tokenizer), learn_slowly(text, 257 + 100, 2));
}

TEST(BpeTraining, IsTheSameForAnyNumberOfThreadsAndAnyOrderOfTexts) {
  std::vector<std::string> texts;
  for (uint32_t seed = 0; seed < 3; ++seed) {
    texts.push_back(testing::prose(80000, 1) + testing::tricky_text(50000, seed));  // several pieces each
  }
  texts.push_back("");
  std::vector<std::string_view> views(texts.begin(), texts.end());
  const int threads_before = thread_pool().size();
  std::vector<uint64_t> fingerprints;
  for (const int threads : {1, 2, 3, 7}) {
    Runtime::current().set_threads(threads);
    fingerprints.push_back(train_bpe(views, {.vocab_size = 1500}).tokenizer->fingerprint());
    std::ranges::reverse(views);
  }
  Runtime::current().set_threads(threads_before);
  for (const uint64_t fingerprint : fingerprints) EXPECT_EQ(fingerprint, fingerprints[0]);
  // ... and it does depend on the texts.
  EXPECT_NE(train_bpe({views.data(), 1}, {.vocab_size = 1500}).tokenizer->fingerprint(), fingerprints[0]);
}

TEST(BpeTraining, StopsWhereTheTextSupportsNoMoreMerges) {
  const TrainedTokenizer trained = train("abab cd", 10000);
  EXPECT_EQ(trained.requested, 10000);
  EXPECT_EQ(trained.reached, 258);  // ab; then every pair occurs once
  EXPECT_EQ(trained.tokenizer->vocab_size(), 258);
  EXPECT_EQ(train("abab cd", 10000, 1).reached, 257 + 4);  // ab, abab, " c", " cd"
  EXPECT_EQ(train("", 300).reached, 257);
}

TEST(BpeTraining, CountsADocumentBoundaryAsAWordBoundary) {
  const std::vector<std::string_view> texts = {"x", "y", "x", "y", "x", "y"};
  EXPECT_EQ(train_bpe(texts, {.vocab_size = 300}).reached, 257);
  EXPECT_EQ(train("xyxyxy", 300).reached, 259);
}

TEST(BpeTraining, HandlesOneWordOfAMillionLetters) {
  std::mt19937 random(1);
  std::string text(1000000, 'a');
  for (char& letter : text) letter = "acgt"[random() % 4];
  const TrainedTokenizer trained = train(text, 1000);
  EXPECT_EQ(trained.reached, 1000);
  std::vector<TokenId> ids;
  trained.tokenizer->encode(text, ids);
  EXPECT_LT(ids.size(), text.size() / 3);
  EXPECT_EQ(trained.tokenizer->decode(ids), text);
}

TEST(BpeTraining, PutsRobertasSpecialTokensBeforeTheBytes) {
  const std::string text = testing::prose(5000, 1) + testing::tricky_text(5000, 2) + " <s> <mask>";
  const std::string_view view = text;
  const TrainedTokenizer trained = train_bpe({&view, 1}, {.vocab_size = 504, .kind = BpeKind::roberta});
  const Tokenizer& tokenizer = *trained.tokenizer;
  EXPECT_EQ(trained.reached, 504);
  TokenId id = 0;
  for (const char* special : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) EXPECT_EQ(tokenizer.token_id(special), id++);
  EXPECT_EQ(tokenizer.piece(5 + 'a'), "a");
  EXPECT_EQ(tokenizer.mask_token(), 4);
  EXPECT_EQ(tokenizer.start_of_text(), 0);
  EXPECT_EQ(tokenizer.end_of_document(), 2);

  // It learns what GPT-2's kind learns, which has one special token and so four merges more.
  auto merges = merges_of(*train(text, 500).tokenizer);
  for (auto& [left, right] : merges) left += 5, right += 5;
  EXPECT_EQ(merges_of(tokenizer), merges);

  std::vector<TokenId> ids, framed;
  tokenizer.encode("the cat", ids);
  tokenizer.encode_with_specials("the cat", framed);
  ids.insert(ids.begin(), 0);
  ids.push_back(2);
  EXPECT_EQ(framed, ids);
  ids.clear();
  tokenizer.encode(testing::tricky_text(3000, 3), ids);
  EXPECT_EQ(tokenizer.decode(ids), testing::tricky_text(3000, 3));
}

TEST(BpeTraining, WritesRobertasKindAsOneFileOrTwo) {
  const test::ScratchFolder folder;
  const std::string text = testing::prose(5000, 1);
  const std::string_view view = text;
  const auto tokenizer = train_bpe({&view, 1}, {.vocab_size = 400, .kind = BpeKind::roberta}).tokenizer;
  for (const char* name : {"tokenizer.json", "vocab.json"}) {
    save_tokenizer(*tokenizer, folder / name);
    const auto loaded = load_tokenizer(folder / name);
    EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint()) << name;
    EXPECT_EQ(loaded->mask_token(), 4) << name;
  }
}

TEST(BpeTraining, RefusesAVocabularySmallerThanTheBytes) {
  const std::string_view text = "text";
  EXPECT_THROW(train_bpe({&text, 1}, {.vocab_size = 260, .kind = BpeKind::roberta}), UserError);
  EXPECT_EQ(train_bpe({&text, 1}, {.vocab_size = 261, .kind = BpeKind::roberta}).reached, 261);
  EXPECT_THROW(train("text", 256), UserError);
  EXPECT_THROW(train("text", -5), UserError);
  EXPECT_EQ(train("text text", 257).reached, 257);
}

}  // namespace
}  // namespace brisk
