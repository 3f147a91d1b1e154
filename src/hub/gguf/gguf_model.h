// Models of Llama's shape in GGUF files, with llama.cpp's names, metadata keys and tokenizer.
//
//   write_gguf("model.gguf", "stories", job.model, store, *tokenizer, GgufType::f16);
//
//   const GgufModel model("model.gguf");        // UserError for another architecture or quantised weights
//   job.model = model.options();
//   std::unique_ptr<Tokenizer> tokenizer = model.tokenizer();
//   model.load_into(store);
//
// llama.cpp keeps rotary pairs next to each other, as brisk does: its converter from Hugging Face reorders the rows of
// queries and keys, and here nothing moves.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "hub/finite.h"
#include "hub/formats/safetensors.h"
#include "hub/gguf/gguf.h"
#include "job/job.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

class GgufModel {
 public:
  explicit GgufModel(const std::string& path);
  explicit GgufModel(GgufFile file);

  const ModelOptions& options() const { return options_; }  // `context` included
  std::unique_ptr<Tokenizer> tokenizer() const;             // UserError if unsupported
  // UserError where a tensor is missing, quantised or of another shape, or there are further layers.
  void check() const;
  // Fills the masters of a decoder built from options(); compute copies, where the store has them, are stale after it.
  void load_into(ParameterStore& store, NonFinite nonfinite = NonFinite::refuse) const;

 private:
  std::map<std::string, SafetensorsEntry> entries() const;

  GgufFile file_;
  ModelOptions options_;
};

// `name` is what tools show. Matrices are written as `type`, gains and biases always as f32. UserError if the model
// is not of Llama's shape.
void write_gguf(const std::string& path, const std::string& name, const ModelOptions& model,
                const ParameterStore& store, const Tokenizer& tokenizer, GgufType type);

}  // namespace brisk
