// Translations by a model that reads one text and writes another: beam search, greedy or drawn at random, of many texts at
// once.
//
//   Translator translator(model, parameters, {.source = *tokenizer, .target = *tokenizer});
//   translator.translate(texts, {.beam = 4}, [&](size_t index, Translated answer) { ... });    // in the order of the texts
//
// How they are decoded: infer/answer/conditional_generator.h.
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/pair_sequences.h"
#include "infer/answer/conditional_generator.h"
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

// What a search found, the best first and `most` at most, as texts.
std::vector<Translated::Text> texts_of(std::span<const BeamSearch::Found> found, const Tokenizer& tokenizer,
                                       int64_t most);

class Translator {
 public:
  // Model, store and tokenizers must outlive the translator.
  Translator(const ConditionalModel& model, const ParameterStore& store, TranslationText text);

  using OnAnswer = std::function<void(size_t index, Translated answer)>;
  // Answers come in the order of the texts, when all are done. A text without words has an empty translation; one that is
  // longer than the model reads is translated in parts (Translated::parts). Throws Cancelled.
  void translate(std::span<const std::string> texts, const TranslateOptions& options, const OnAnswer& on_answer);
  int64_t tokens() const { return generator_.tokens(); }  // of all translations so far

 private:
  // The translation of a text, of those of its parts.
  Translated joined(std::span<const std::vector<TokenId>> sources,
                    std::span<const std::vector<Translated::Text>> parts) const;

  TranslationText text_;
  int64_t most_source_;  // tokens, with special ones
  ConditionalGenerator generator_;
  uint64_t texts_seen_ = 0;  // so that what is drawn at random does not depend on how texts are handed over
};

}  // namespace brisk
