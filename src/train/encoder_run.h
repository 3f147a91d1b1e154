// A new encoder that begins as one of brisk's own runs: the layers and tables of its checkpoint, and the head where the
// two have the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/encoder_model.h"
#include "tensor/parameter.h"

namespace brisk {

// As HuggingFaceEncoder::load_into: layer l comes from layer `layers[l]`, and what a head lacks keeps its values.
EncoderLoading load_encoder(const std::string& checkpoint, ParameterStore& store,
                            const std::vector<int64_t>& layers = {});

}  // namespace brisk
