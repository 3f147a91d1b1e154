// Model files of llama2.c, version 0: seven int32, then fp32 tensors in a fixed order.
//
//   const Llama2cModel model = open_llama2c("stories260K.bin");   // UserError unless header and size agree
//   job.model = model_options(model);                             // build the decoder from these
//   load_into(model, store);                                      // every parameter filled, or UserError
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/files/files.h"
#include "hub/finite.h"
#include "job/job.h"
#include "tensor/parameter.h"

namespace brisk {

struct Llama2cModel {
  std::string path;
  int64_t width = 0;                                    // D
  int64_t feed_forward_width = 0;                       // F
  int64_t layers = 0;                                   // L
  int64_t heads = 0;                                    // H
  int64_t key_value_heads = 0;                          // G
  int64_t vocabulary = 0;                               // V
  int64_t context = 0;                                  // T
  bool tied = true;                                     // the output projection is the token embedding
  int64_t head_width() const { return width / heads; }  // K

  // Into the mapped file.
  std::span<const float> embedding;          // [V, D]
  std::span<const float> attention_norm;     // [L, D]
  std::span<const float> query;              // [L, H K, D]
  std::span<const float> key;                // [L, G K, D]
  std::span<const float> value;              // [L, G K, D]
  std::span<const float> attention_out;      // [L, D, H K]
  std::span<const float> feed_forward_norm;  // [L, D]
  std::span<const float> gate;               // [L, F, D] (w1)
  std::span<const float> down;               // [L, D, F] (w2)
  std::span<const float> up;                 // [L, F, D] (w3)
  std::span<const float> final_norm;         // [D]
  std::span<const float> head;               // [V, D]; the embedding where tied

  MappedFile file;
};

Llama2cModel open_llama2c(const std::string& path);

// The decoder that this model is: RMSNorm, rotary positions, SwiGLU, grouped heads, no bias.
ModelOptions model_options(const Llama2cModel& model);

// Fills the masters of a decoder built from model_options(). Compute copies, where the store has them, are stale after
// it.
void load_into(const Llama2cModel& model, ParameterStore& store, NonFinite nonfinite = NonFinite::refuse);

}  // namespace brisk
