// Learns a BPE vocabulary over the characters of words and of runs of marks, \w+|[^\w\s]+, as the trainer of Hugging
// Face's tokenizers library does with its Whitespace pre-tokenizer.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/runtime.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"
#include "text/training/merge_learner.h"
#include "text/training/word_counts.h"

namespace brisk {

namespace {

constexpr std::array<const char*, 4> kWordBpeSpecials = {"<pad>", "<unk>", "<eos>", "<mask>"};
constexpr const char* kWordBpeUnknown = "<unk>";

// The characters that get a token, in the order of Unicode: all of them if there is room, else the most frequent.
std::map<uint32_t, TokenId> alphabet_of(std::span<const WordCount> words, int64_t most) {
  std::map<uint32_t, int64_t> uses;
  for (const WordCount& word : words) {
    for_each_character(word.word, [&](uint32_t character, bool /*is_first*/) { uses[character] += word.count; });
  }
  std::vector<std::pair<int64_t, uint32_t>> rarest;
  for (const auto& [character, count] : uses) rarest.emplace_back(count, character);
  // Of characters equally rare, the last goes first.
  std::ranges::sort(rarest, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  for (int64_t i = 0; i < std::ssize(rarest) - most; ++i) uses.erase(rarest[static_cast<size_t>(i)].second);
  std::map<uint32_t, TokenId> alphabet;
  for (const auto& [character, count] : uses)
    alphabet[character] = static_cast<TokenId>(kWordBpeSpecials.size() + alphabet.size());
  return alphabet;
}

}  // namespace

TrainedTokenizer train_word_bpe(std::span<const std::string_view> texts, const WordBpeTrainingOptions& options) {
  BRISK_CHECK(options.min_pair_count >= 1, "min_pair_count = {}", options.min_pair_count);
  constexpr int64_t specials = std::ssize(kWordBpeSpecials), kMost = int64_t{1} << 30;
  if (options.vocab_size <= specials || options.vocab_size > kMost) {
    user_error("a vocabulary of {} tokens; expected {} (the special tokens and a character) to {}", options.vocab_size,
               specials + 1, kMost);
  }
  TokenizerParts parts;
  parts.pre_tokenizer = R"({"type":"Whitespace"})";
  std::vector<std::string>& tokens = parts.model.tokens;
  for (const char* special : kWordBpeSpecials) {
    parts.added_tokens.push_back(special_token(static_cast<TokenId>(tokens.size()), special));
    tokens.emplace_back(special);
  }
  parts.model.unknown_token = kWordBpeUnknown;

  const PieceCounts pieces = count_pieces(count_spaced_pieces(texts), parts);
  std::vector<WordCount> words;
  words.reserve(pieces.size());
  for (const auto& [word, count] : pieces) words.push_back({word, count});
  const std::map<uint32_t, TokenId> alphabet = alphabet_of(words, options.vocab_size - specials);
  for (const auto& [character, id] : alphabet) append_utf8(character, tokens.emplace_back());
  MergeLearner learner(options.min_pair_count);
  std::vector<TokenId> symbols;
  for (const WordCount& word : words) {
    symbols.clear();
    for_each_character(word.word, [&](uint32_t character, bool /*is_first*/) {
      const auto found = alphabet.find(character);
      if (found != alphabet.end()) symbols.push_back(found->second);
    });
    learner.add_word(symbols, word.count);
  }
  while (std::ssize(tokens) < options.vocab_size) {
    throw_if_cancelled();
    const auto merge =
        learner.learn_next(static_cast<TokenId>(tokens.size()), static_cast<uint32_t>(parts.model.merges.size()));
    if (!merge) break;
    parts.model.merges.push_back(*merge);
    tokens.push_back(tokens[static_cast<size_t>(merge->left)] + tokens[static_cast<size_t>(merge->right)]);
  }
  read_special_roles("trained", nullptr, tokens, parts);

  TrainedTokenizer result;
  result.requested = options.vocab_size;
  result.reached = std::ssize(tokens);
  result.tokenizer = std::make_unique<BpeTokenizer>(std::move(parts), "trained");
  return result;
}

}  // namespace brisk
