// Tokenizers (brisk/tokenizer.h) from memory, and their training.
//
//   std::vector<std::string_view> texts = {"the cat sat on the mat ..."};
//   TrainedTokenizer trained = train_bpe(texts, {.vocab_size = 10000});
//   if (trained.reached < trained.requested) ...            // the text supports no more merges: a warning
//   trained.tokenizer->save("tokenizer.json");
//
// A byte-level BPE vocabulary trained here has the 256 bytes in their order, then one id per merge in the order the
// merges were learned. GPT-2's has the special token <|endoftext|> behind them, so that the id of a byte is its value;
// RoBERTa's has <s>, <pad>, </s>, <unk> and <mask> before them, that of text to text the first four. Any byte string
// has an encoding, and decode(encode(text)) == text for all of them, valid UTF-8 or not.
#pragma once

#include <brisk/tokenizer.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace brisk {

// load_tokenizer() from the content of a file (not GPT-2's, which are two). `name` is named in errors.
std::unique_ptr<Tokenizer> tokenizer_from_memory(std::string_view content, const std::string& name);

// The same from the contents of GPT-2's two files.
std::unique_ptr<Tokenizer> gpt2_tokenizer_from_memory(std::string_view vocabulary, const std::string& vocabulary_name,
                                                      std::string_view merges, const std::string& merges_name);

// What tokenizer_config.json says of the model that reads the ids.
struct TokenizerFolderOptions {
  bool token_types = true;  // false: the model takes no token_type_ids (DistilBERT, RoBERTa)
  int64_t max_length = 0;   // the most tokens of a text, specials included; 0: not said
};

// tokenizer.json, the tokenizer_config.json that tells Hugging Face's AutoTokenizer (and load_tokenizer) the special
// tokens by their roles, and vocab.txt for WordPiece.
void save_tokenizer_folder(const Tokenizer& tokenizer, const std::string& directory,
                           const TokenizerFolderOptions& options = {});

// The special tokens, and what is added around a text: nothing, <s> and </s>, or </s> alone.
enum class BpeKind : uint8_t { gpt2, roberta, text_to_text };

struct BpeTrainingOptions {
  int64_t vocab_size = 10000;  // 256 bytes, merges and special tokens, of which the kinds have 1, 5 and 4
  int64_t min_pair_count = 2;  // a pair seen less often than this is never merged; at least 1
  BpeKind kind = BpeKind::gpt2;
};

struct TrainedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  int64_t requested = 0;  // options.vocab_size
  int64_t reached = 0;    // smaller when the text supports no more merges
};

// Learns a byte-level BPE vocabulary on all cores of thread_pool() (so not from inside a run() of it). Each text is
// a document of its own. The result depends on the texts and the options alone, never on the number of threads or the
// order of the texts: of two pairs equally frequent, the one with the smaller ids is merged first.
TrainedTokenizer train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options);

struct WordBpeTrainingOptions {
  int64_t vocab_size = 50000;  // <pad> <unk> <eos> <mask>, characters, and merges
  int64_t min_pair_count = 2;  // a pair seen less often than this is never merged; at least 1
};

// Learns a BPE vocabulary over the characters of words and of runs of marks, \w+|[^\w\s]+, on all cores, as train_bpe()
// does. Spaces are no part of it, so decode() puts one between any two tokens; a character that it has not seen, or has
// no room for, is <unk>. Its merges are those of the trainer of Hugging Face's tokenizers library.
TrainedTokenizer train_word_bpe(std::span<const std::string_view> texts, const WordBpeTrainingOptions& options);

struct WordPieceTrainingOptions {
  int64_t vocab_size = 30000;      // [PAD] [UNK] [CLS] [SEP] [MASK], characters, and pieces of words
  int64_t min_pair_count = 2;      // a pair seen less often than this is never joined; at least 1
  bool lowercase = false;          // and without accents, as BERT's uncased vocabularies
  int64_t most_characters = 1000;  // characters beyond these, the rarest, get no token
};

// Learns a WordPiece vocabulary as BERT has it, on all cores, as train_bpe() does. Pieces are joined by their counts,
// as the trainer of Hugging Face's tokenizers library joins them.
TrainedTokenizer train_wordpiece(std::span<const std::string_view> texts, const WordPieceTrainingOptions& options);

}  // namespace brisk
