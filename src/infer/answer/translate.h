// Translations by a model that reads one text and writes another: beam search, greedy or drawn at random, of many texts at
// once.
//
//   Translator translator(model, parameters, {.source = *tokenizer, .target = *tokenizer});
//   translator.translate(texts, {.beam = 4}, [&](size_t index, Translated answer) { ... });    // in the order of the texts
//
// Texts of about the same length are decoded together, all their beams in one ragged batch: a row for each beam, no padding,
// and beams of a text that is done leave it. Keys and values of a beam's earlier tokens are kept, and follow it when beams
// change places; what cross-attention reads of a source is computed once and read by all its beams.
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/pair_sequences.h"
#include "infer/open/trained_model.h"
#include "models/model.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

// What the tokens of both texts mean.
struct TranslationText {
  const Tokenizer& source;
  const Tokenizer& target;
  PairFrame frame;
};
TranslationText text_of(const TrainedModel& model);

// The tokens of a text in as many parts as it takes, of at most `most` tokens each: divided after the end of a sentence
// where there is one in the second half of a part, else between words, else anywhere. Of an empty text there is none.
std::vector<std::vector<TokenId>> source_parts(std::string_view text, const Tokenizer& tokenizer, int64_t most);

class Translator {
 public:
  // Model, store and tokenizers must outlive the translator.
  Translator(const TextToTextModel& model, const ParameterStore& store, TranslationText text);
  ~Translator();
  Translator(Translator&&) noexcept;

  using OnAnswer = std::function<void(size_t index, Translated answer)>;
  // Answers come in the order of the texts, when all are done. A text without words has an empty translation; one that is
  // longer than the model reads is translated in parts (Translated::parts). Throws Cancelled.
  void translate(std::span<const std::string> texts, const TranslateOptions& options, const OnAnswer& on_answer);
  int64_t tokens() const { return tokens_; }  // of all translations so far

 private:
  struct State;
  // A text, or a part of one.
  struct Sentence {
    uint64_t number = 0, part = 0;
    std::vector<TokenId> source;  // with its special tokens
    std::vector<Translated::Text> best;
  };

  void decode(std::span<Sentence> sentences, const TranslateOptions& options);  // in one batch
  Translated joined(std::span<const Sentence> parts) const;
  int64_t most_tokens(const Sentence& sentence, const TranslateOptions& options) const;

  const TextToTextModel& model_;
  const ParameterStore& store_;
  TranslationText text_;
  std::unique_ptr<State> state_;
  int64_t tokens_ = 0;
  uint64_t texts_seen_ = 0;  // so that what is drawn at random does not depend on how texts are handed over
};

}  // namespace brisk
