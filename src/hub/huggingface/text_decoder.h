// The decoders of Hugging Face's VisionEncoderDecoderModel: the part `decoder` of its config.json, and the tensors whose names
// begin with "decoder.". BERT and GPT-2 with cross-attention, TrOCR's (BART's shape) and mBART's (Donut, Nougat).
//
//   const auto shape = read_text_decoder_config(part, model);                    // UserError if unsupported
//   for (const WeightMap& entry : text_decoder_weight_map(shape, store)) ...      // of the parameters of a TextDecoder
//
//   const auto shape = text_decoder_shape_for(model);                            // UserError: no shape fits
//   json["decoder"] = text_decoder_json(shape, model, tokens);
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hub/huggingface/config_reader.h"
#include "hub/huggingface/encoder_decoder_config.h"
#include "hub/weight_map.h"
#include "job/job.h"
#include "tensor/parameter.h"

namespace brisk {

enum class TextDecoderShape : uint8_t { bert, gpt2, trocr, mbart };

// What a decoder of this configuration is, as options of an encoder-decoder's model section; tie_embeddings is true where the
// files decide it.
TextDecoderShape read_text_decoder_config(const ConfigReader& decoder, ModelOptions& model);

// Hugging Face's names of the decoder's parameters of `store`.
std::vector<WeightMap> text_decoder_weight_map(TextDecoderShape shape, const ParameterStore& store);

// Names there: of the output projection, which a file may have although it is the token embedding; of that; and before the
// number of a layer.
struct TextDecoderNames {
  std::string head, table, layers;
};
TextDecoderNames text_decoder_names(TextDecoderShape shape);

TextDecoderShape text_decoder_shape_for(const ModelOptions& model);
nlohmann::ordered_json text_decoder_json(TextDecoderShape shape, const ModelOptions& model,
                                         const WrittenTokens& tokens);

}  // namespace brisk
