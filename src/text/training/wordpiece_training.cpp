// Learns a WordPiece vocabulary as the trainer of Hugging Face's tokenizers library does: BPE over the characters of
// words, all but the first of a word with "##" before them, and the pieces that the merges make are the vocabulary. The
// library numbers the "##" characters as it meets them, another way each time; here they are in the order of Unicode.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/runtime.h"
#include "text/files/tokenizer_files.h"
#include "text/training/merge_learner.h"
#include "text/training/word_counts.h"

namespace brisk {

namespace {

constexpr const char* kSpecials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
enum SpecialId : TokenId { kPadding, kUnknownWord, kClassification, kSeparator, kMask, kSpecialCount };
constexpr std::string_view kPrefix = "##";

// The tokens of single characters: `first` at the beginning of a word, `next` inside one; -1 if there is none.
struct CharacterTokens {
  TokenId first = -1, next = -1;
};

class WordAlphabet {
 public:
  // Adds the tokens to `tokens`: all characters, then those that occur inside words with the prefix.
  WordAlphabet(const PieceCounts& words, int64_t most_characters, std::vector<std::string>& tokens) {
    struct Use {
      int64_t count = 0;
      bool inside = false;
    };
    std::map<uint32_t, Use> uses;  // in the order of Unicode
    for (const auto& [word, count] : words) {
      for_each_character(word, [&, count = count](uint32_t character, bool is_first) {
        Use& use = uses[character];
        use.count += count;
        use.inside = use.inside || !is_first;
      });
    }
    drop_rarest(uses, most_characters);
    for (const bool inside : {false, true}) {
      for (const auto& [character, use] : uses) {
        if (inside && !use.inside) continue;
        CharacterTokens& ids = tokens_[character];
        (inside ? ids.next : ids.first) = static_cast<TokenId>(tokens.size());
        std::string text(inside ? kPrefix : "");
        append_utf8(character, text);
        tokens.push_back(std::move(text));
      }
    }
  }

  // Characters without a token are left out, as the library does.
  void symbols_of(std::string_view word, std::vector<TokenId>& symbols) const {
    symbols.clear();
    for_each_character(word, [&](uint32_t character, bool is_first) {
      const auto found = tokens_.find(character);
      if (found != tokens_.end()) symbols.push_back(is_first ? found->second.first : found->second.next);
    });
  }

 private:
  template <typename Uses>
  static void drop_rarest(Uses& uses, int64_t most_characters) {
    const auto surplus = static_cast<int64_t>(uses.size()) - most_characters;
    if (surplus <= 0) return;
    std::vector<std::pair<int64_t, uint32_t>> by_count;
    for (const auto& [character, use] : uses) by_count.emplace_back(use.count, character);
    // Of characters equally rare, the last goes first.
    std::ranges::sort(by_count, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    for (int64_t i = 0; i < surplus; ++i) uses.erase(by_count[i].second);
  }

  std::unordered_map<uint32_t, CharacterTokens> tokens_;
};

}  // namespace

TrainedTokenizer train_wordpiece(std::span<const std::string_view> texts, const WordPieceTrainingOptions& options) {
  BRISK_CHECK(options.min_pair_count >= 1, "min_pair_count = {}", options.min_pair_count);
  WordPieceParts parts;
  std::vector<std::string>& tokens = parts.model.tokens;
  for (const char* special : kSpecials) {
    parts.added_tokens.push_back(special_token(static_cast<TokenId>(tokens.size()), special));
    tokens.emplace_back(special);
  }
  parts.classification = kClassification;
  parts.separator = kSeparator;
  set_bert_components({.lowercase = options.lowercase}, parts.model, parts);

  const PieceCounts words = count_pieces(count_bert_pieces(texts), parts);
  const WordAlphabet alphabet(words, options.most_characters, tokens);
  constexpr int64_t kMost = int64_t{1} << 30;
  if (options.vocab_size < std::ssize(tokens) || options.vocab_size > kMost) {
    user_error(
        "a WordPiece vocabulary of {} tokens; expected {} ({} special tokens and the characters of the text) to {}",
        options.vocab_size, tokens.size(), std::size(kSpecials), kMost);
  }
  MergeLearner learner(options.min_pair_count);
  std::vector<TokenId> symbols;
  for (const auto& [word, count] : words) {
    alphabet.symbols_of(word, symbols);
    learner.add_word(symbols, count);
  }
  // Two merges may make the same piece of different parts: it is one token then, though two symbols here.
  std::vector<std::string> texts_of_symbols = tokens;
  std::unordered_map<std::string, bool> is_token;
  for (const std::string& token : tokens) is_token[token] = true;
  while (std::ssize(tokens) < options.vocab_size) {
    throw_if_cancelled();
    const auto merge = learner.learn_next(static_cast<TokenId>(texts_of_symbols.size()), 0);
    if (!merge) break;
    std::string text = texts_of_symbols[merge->left] + texts_of_symbols[merge->right].substr(kPrefix.size());
    if (!std::exchange(is_token[text], true)) tokens.push_back(text);
    texts_of_symbols.push_back(std::move(text));
  }
  read_special_roles("trained", nullptr, tokens, parts);

  TrainedTokenizer result;
  result.requested = options.vocab_size;
  result.reached = std::ssize(tokens);
  result.tokenizer = std::make_unique<WordPieceTokenizer>(std::move(parts), "trained");
  return result;
}

}  // namespace brisk
