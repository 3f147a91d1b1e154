// A new encoder that begins as one of brisk's own runs: the layers and tables of its checkpoint, and the head where the
// two have the same.
//
//   initialise_what_may_be_missing(engine.parameters(), seed);
//   const EncoderLoading loading = load_encoder("runs/mlm/checkpoints/step-00001000", engine.parameters());
//   // a student: load_encoder(teacher, store, {0, 2, 4, 7, 9, 11})
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/huggingface/encoder.h"
#include "tensor/parameter.h"

namespace brisk {

// One of those that stand on the layers, which another task may have otherwise or not at all.
bool is_head_parameter(std::string_view name);

// Draws, as ParameterStore::initialise() does, only what a model that is loaded afterwards may lack: heads and
// adapters. Tens of millions of draws that would be overwritten are half a second of a start.
void initialise_what_may_be_missing(ParameterStore& store, uint64_t seed);

// As HuggingFaceEncoder::load_into: layer l comes from layer `layers[l]`, and what a head lacks keeps its values.
EncoderLoading load_encoder(const std::string& checkpoint, ParameterStore& store,
                            const std::vector<int64_t>& layers = {}, NonFinite nonfinite = NonFinite::refuse);

}  // namespace brisk
