// Text to token ids and back.
//
//   std::vector<std::string_view> texts = {"the cat sat on the mat ..."};
//   TrainedTokenizer trained = train_bpe(texts, {.vocab_size = 10000});
//   if (trained.reached < trained.requested) ...            // the text supports no more merges: a warning
//   trained.tokenizer->save("tokenizer.json");              // atomically
//
//   std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("tokenizer.json");
//   std::vector<TokenId> ids;
//   tokenizer->encode("the cat", ids);                      // appends
//   tokenizer->decode(ids);                                 // "the cat"
//
// All files that are read become a tokenizer of Hugging Face's kind, and save() writes its tokenizer.json: encode()
// gives the ids that `tokenizers` gives for that file with add_special_tokens=False. So "<|endoftext|>" inside a text
// is that token, as it is there. Text that is not UTF-8 is accepted: an invalid byte is a symbol that is neither
// letter, number nor space; byte-level vocabularies and those with byte fallback have a token for it.
//
// A vocabulary trained here is byte-level BPE: ids 0 to 255 are the bytes of that value, then one id per merge in the
// order the merges were learned, and last the special token <|endoftext|>. So 257 is the smallest vocabulary, any byte
// string has an encoding, and decode(encode(text)) == text for all of them, valid UTF-8 or not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

using TokenId = int32_t;

// The special tokens around the texts of a model's input: one text A as `prefix A suffix`, a pair as
// `prefix A middle B suffix`. BERT: [CLS] A [SEP], and [CLS] A [SEP] B [SEP] with B and its [SEP] of type 1.
struct SequenceTemplate {
  std::vector<TokenId> prefix, middle, suffix;
  bool second_type = false;  // B and what follows it are of token type 1, all else of type 0
};

// A tokenizer never changes once made: every member may be called from any number of threads at once.
class Tokenizer {
 public:
  Tokenizer() = default;
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Appends the ids of `text` to `out`. Adds neither end_of_document() nor start_of_text().
  virtual void encode(std::string_view text, std::vector<TokenId>& out) const = 0;

  // The same with the special tokens that the file puts around a text, as the library does by default.
  virtual void encode_with_specials(std::string_view text, std::vector<TokenId>& out) const { encode(text, out); }

  // The text of `ids`, special tokens included: the inverse of encode(). A SentencePiece vocabulary writes a space
  // before every text; it is taken off again at the beginning of `ids`. So decode a sequence whole, or piece by piece
  // with piece(), but not in slices. An id outside the vocabulary is a UserError.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  // The bytes of one token, possibly a fraction of a UTF-8 character.
  virtual std::string piece(TokenId id) const = 0;

  virtual int64_t vocab_size() const = 0;  // the largest id and one

  // The token that ends a document: <|endoftext|> of GPT-2 and of our own vocabularies, </s> of Llama. From
  // tokenizer_config.json where that lies beside the file, else by the usual names.
  virtual std::optional<TokenId> end_of_document() const = 0;

  // The token that opens a text, for vocabularies that have one: <s> of Llama (llama2.c's models also write it to
  // stop).
  virtual std::optional<TokenId> start_of_text() const = 0;

  // The id of a token as files write it: "[PAD]", "##ing", "Ġthe". Looks through the vocabulary.
  virtual std::optional<TokenId> token_id(std::string_view /*token*/) const { return std::nullopt; }

  // What encode_with_specials() puts around a text, and what belongs around a pair of texts. pair_template() is a
  // UserError if the file asks for something that is no SequenceTemplate.
  virtual SequenceTemplate single_template() const { return {}; }
  virtual SequenceTemplate pair_template() const { return {}; }

  // The token that stands for one that is to be guessed: [MASK] of BERT, <mask> of RoBERTa.
  virtual std::optional<TokenId> mask_token() const { return std::nullopt; }

  // Whether the token goes on with the word of the token before it: "##ing", or a piece of a byte-level vocabulary
  // that does not begin with a space. Special tokens never do.
  virtual bool continues_word(TokenId /*id*/) const { return false; }

  // A hash of everything that decides what encode() returns: it keys the token cache. The same for a tokenizer
  // saved and loaded again, on every machine.
  virtual uint64_t fingerprint() const = 0;

  // Writes a tokenizer.json that Hugging Face's libraries read, to the side of `path`, then renames it.
  virtual void save(const std::string& path) const = 0;
};

// `path` is one of
//   - a tokenizer.json, of ours or of Hugging Face's tokenizers library, with BPE or WordPiece;
//   - BERT's vocab.txt, with tokenizer_config.json next to it or not;
//   - a SentencePiece .model with BPE;
//   - GPT-2's encoder.json (or vocab.json) with vocab.bpe (or merges.txt) next to it, or either of the two files;
//   - llama2.c's tokenizer binary (tok512.bin, tokenizer.bin);
//   - a directory that holds a tokenizer.json, a tokenizer.model, the two files of GPT-2 or RoBERTa, or a vocab.txt.
// A file that is missing, cut short or inconsistent, or has a component that is not known, is a UserError that names
// it, what was found and what to do.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

// The same from the content of a file (not GPT-2's, which are two). `name` is named in errors.
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

// By the name of `path`: a folder (one that is there, or a name with a slash at its end), GPT-2's two files (any of
// their names; byte-level vocabularies only), or else a tokenizer.json.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& path);

struct BpeTrainingOptions {
  int64_t vocab_size = 10000;  // 256 bytes + merges + <|endoftext|>; at least 257
  int64_t min_pair_count = 2;  // a pair seen less often than this is never merged; at least 1
};

struct TrainedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  int64_t requested = 0;  // options.vocab_size
  int64_t reached = 0;    // smaller when the text supports no more merges
};
using BpeTrainingResult = TrainedTokenizer;

// Learns a byte-level BPE vocabulary on all cores of thread_pool() (so not from inside a run() of it). Each text is
// a document of its own. The result depends on the texts and the options alone, never on the number of threads or the
// order of the texts: of two pairs equally frequent, the one with the smaller ids is merged first.
TrainedTokenizer train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options);

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
