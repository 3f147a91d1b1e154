// Learns a byte-level BPE vocabulary.
#include "base/error.h"
#include "base/runtime.h"
#include "text/files/tokenizer_files.h"
#include "text/training/merge_learner.h"
#include "text/training/word_counts.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

TrainedTokenizer train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options) {
  constexpr int64_t kBytes = 256, kSpecials = 1, kMost = int64_t{1} << 30;
  if (options.vocab_size < kBytes + kSpecials || options.vocab_size > kMost) {
    user_error("a vocabulary of {} tokens; expected {} (256 bytes and {}) to {}", options.vocab_size,
               kBytes + kSpecials, kGpt2EndOfDocument, kMost);
  }
  BRISK_CHECK(options.min_pair_count >= 1, "min_pair_count = {}", options.min_pair_count);

  std::vector<std::string> pieces;
  std::vector<Merge> merges;
  for (int byte = 0; byte < kBytes; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  MergeLearner learner(options.min_pair_count);
  std::vector<TokenId> symbols;
  for (const WordCount& word : count_words(texts)) {
    symbols.clear();
    for (const char byte : word.word) symbols.push_back(static_cast<unsigned char>(byte));
    learner.add_word(symbols, word.count);
  }
  while (static_cast<int64_t>(pieces.size()) < options.vocab_size - kSpecials) {
    throw_if_cancelled();
    const auto merge = learner.learn_next(static_cast<TokenId>(pieces.size()), static_cast<uint32_t>(merges.size()));
    if (!merge) break;
    merges.push_back(*merge);
    pieces.push_back(pieces[merge->left] + pieces[merge->right]);
  }
  BpeModelParts model;
  for (const std::string& piece : pieces) model.tokens.push_back(byte_alphabet_encode(piece));
  model.tokens.emplace_back(kGpt2EndOfDocument);  // no merge can make it: letters and symbols are different words
  model.merges = std::move(merges);

  TrainedTokenizer result;
  result.requested = options.vocab_size;
  result.reached = static_cast<int64_t>(model.tokens.size());
  result.tokenizer = std::make_unique<BpeTokenizer>(byte_level_parts(std::move(model)), "trained");
  return result;
}

}  // namespace brisk
