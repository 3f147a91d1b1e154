// Text to token ids and back.
//
//   std::unique_ptr<brisk::Tokenizer> tokenizer = brisk::load_tokenizer("tokenizer.json");
//   std::vector<brisk::TokenId> ids;
//   tokenizer->encode("the cat", ids);                      // appends
//   tokenizer->decode(ids);                                 // "the cat"
//   tokenizer->save("tokenizer.json");                      // atomically
//
// All files that are read become a tokenizer of Hugging Face's kind, and save() writes its tokenizer.json: encode()
// gives the ids that `tokenizers` gives for that file with add_special_tokens=False. So "<|endoftext|>" inside a text
// is that token, as it is there. Text that is not UTF-8 is accepted: an invalid byte is a symbol that is neither
// letter, number nor space; byte-level vocabularies and those with byte fallback have a token for it.
#pragma once

#include <brisk/error.h>

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
class BRISK_API Tokenizer {
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
  // tokenizer_config.json where that lies next to the file, else by the usual names.
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
//   - a tokenizer.json, of ours or of Hugging Face's tokenizers library, with BPE, WordPiece or Unigram;
//   - BERT's vocab.txt, with tokenizer_config.json next to it or not;
//   - a SentencePiece .model with Unigram (T5's, with the tokens that tokenizer_config.json next to it adds) or BPE;
//   - Marian's source.spm or target.spm, with the vocab.json that has the ids next to it;
//   - GPT-2's encoder.json (or vocab.json) with vocab.bpe (or merges.txt) next to it, or either of the two files;
//   - llama2.c's tokenizer binary (tok512.bin, tokenizer.bin);
//   - a directory that holds a tokenizer.json, a tokenizer.model, a spiece.model, Marian's files (it is then the source's),
//     the two files of GPT-2 or RoBERTa, or a vocab.txt.
// A file that is missing, cut short or inconsistent, or has a component that is not known, is a UserError that names
// it, what was found and what to do.
BRISK_API std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

// By the name of `path`: a folder (one that is there, or a name with a slash at its end), GPT-2's two files (any of
// their names; byte-level vocabularies only), or else a tokenizer.json.
BRISK_API void save_tokenizer(const Tokenizer& tokenizer, const std::string& path);

}  // namespace brisk
