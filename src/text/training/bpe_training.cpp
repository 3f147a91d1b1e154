// Learns a byte-level BPE vocabulary.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/runtime.h"
#include "text/files/tokenizer_files.h"
#include "text/training/merge_learner.h"
#include "text/training/word_counts.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

TrainedTokenizer train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options) {
  constexpr int64_t kBytes = 256, kMost = int64_t{1} << 30;
  const bool roberta = options.kind == BpeKind::roberta;
  const int64_t specials = roberta ? std::ssize(kRobertaSpecials) : 1;
  if (options.vocab_size < kBytes + specials || options.vocab_size > kMost) {
    user_error("a vocabulary of {} tokens; expected {} (256 bytes and {}) to {}", options.vocab_size, kBytes + specials,
               roberta ? fmt::format("{}", fmt::join(kRobertaSpecials, ", ")) : kGpt2EndOfDocument, kMost);
  }
  BRISK_CHECK(options.min_pair_count >= 1, "min_pair_count = {}", options.min_pair_count);

  // RoBERTa's special tokens come first; GPT-2's is added at the end.
  BpeModelParts model;
  if (roberta) model.tokens.assign(kRobertaSpecials.begin(), kRobertaSpecials.end());
  const auto first_byte = static_cast<TokenId>(model.tokens.size());
  std::vector<std::string> pieces;  // from the first byte on
  std::vector<Merge> merges;
  for (int byte = 0; byte < kBytes; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  MergeLearner learner(options.min_pair_count);
  std::vector<TokenId> symbols;
  for (const WordCount& word : count_words(texts)) {
    symbols.clear();
    for (const char byte : word.word) symbols.push_back(first_byte + static_cast<unsigned char>(byte));
    learner.add_word(symbols, word.count);
  }
  while (std::ssize(pieces) < options.vocab_size - specials) {
    throw_if_cancelled();
    const auto merge =
        learner.learn_next(first_byte + static_cast<TokenId>(pieces.size()), static_cast<uint32_t>(merges.size()));
    if (!merge) break;
    merges.push_back(*merge);
    pieces.push_back(pieces[merge->left - first_byte] + pieces[merge->right - first_byte]);
  }
  for (const std::string& piece : pieces) model.tokens.push_back(byte_alphabet_encode(piece));
  // No merge can make a special token: letters and symbols are different words.
  if (!roberta) model.tokens.emplace_back(kGpt2EndOfDocument);
  model.merges = std::move(merges);

  TrainedTokenizer result;
  result.requested = options.vocab_size;
  result.reached = static_cast<int64_t>(model.tokens.size());
  result.tokenizer = std::make_unique<BpeTokenizer>(
      roberta ? roberta_parts(std::move(model), "trained", nullptr) : byte_level_parts(std::move(model)), "trained");
  return result;
}

}  // namespace brisk
