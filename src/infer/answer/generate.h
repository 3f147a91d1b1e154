// Text from a trained model, one token at a time, with a key/value cache.
//
//   Generator generator(model, parameters, tokenizer);
//   Generated result = generator.generate("In the beginning", {.max_tokens = 100, .temperature = 0.8, .top_k = 50});
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

// The next token from logits, which are changed on the way. `draw` is uniform in (0, 1).
TokenId sample_token(std::span<float> logits, std::span<const TokenId> text, const GenerateOptions& options,
                     double draw);

class Generator {
 public:
  // All three must outlive the generator.
  Generator(const CausalModel& model, const ParameterStore& store, const Tokenizer& tokenizer);
  ~Generator();

  // `on_piece` gets the bytes of each new token as it is drawn.
  Generated generate(std::string_view prompt, const GenerateOptions& options,
                     const std::function<void(std::string_view)>& on_piece = {});

 private:
  struct State;
  void feed(std::span<const TokenId> tokens, std::vector<float>& logits);

  const CausalModel& model_;
  const ParameterStore& store_;
  const Tokenizer& tokenizer_;
  std::unique_ptr<State> state_;
};

}  // namespace brisk
