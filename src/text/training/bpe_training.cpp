// Learns a byte-level BPE vocabulary.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
  std::vector<std::string> first;  // special tokens before the bytes
  if (options.kind == BpeKind::roberta) first.assign(kRobertaSpecials.begin(), kRobertaSpecials.end());
  if (options.kind == BpeKind::text_to_text) first.assign(kTextToTextSpecials.begin(), kTextToTextSpecials.end());
  const int64_t specials = std::max<int64_t>(1, std::ssize(first));
  if (options.vocab_size < kBytes + specials || options.vocab_size > kMost) {
    user_error("a vocabulary of {} tokens; expected {} (256 bytes and {}) to {}", options.vocab_size, kBytes + specials,
               first.empty() ? kGpt2EndOfDocument : fmt::format("{}", fmt::join(first, ", ")), kMost);
  }
  BRISK_CHECK(options.min_pair_count >= 1, "min_pair_count = {}", options.min_pair_count);

  // GPT-2's special token is added at the end.
  BpeModelParts model;
  model.tokens = first;
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
  if (first.empty()) model.tokens.emplace_back(kGpt2EndOfDocument);
  model.merges = std::move(merges);

  TrainedTokenizer result;
  result.requested = options.vocab_size;
  result.reached = static_cast<int64_t>(model.tokens.size());
  const auto parts = [&] {
    switch (options.kind) {
      case BpeKind::roberta: return roberta_parts(std::move(model), "trained", nullptr);
      case BpeKind::text_to_text: return text_to_text_parts(std::move(model));
      case BpeKind::gpt2: break;
    }
    return byte_level_parts(std::move(model));
  };
  result.tokenizer = std::make_unique<BpeTokenizer>(parts(), "trained");
  return result;
}

}  // namespace brisk
