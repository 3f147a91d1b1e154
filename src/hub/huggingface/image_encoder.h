// Image encoders in Hugging Face's files: ViT, BEiT (DiT is one), Swin and Donut's Swin, as models of their own or as the part
// `encoder` of a VisionEncoderDecoderModel.
//
//   read_image_encoder_config(reader, model);                                            // UserError if unsupported
//   for (const WeightMap& entry : image_encoder_weight_map("swin", store, "encoder.", "encoder.")) ...
//   json["encoder"] = image_encoder_json(model);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hub/huggingface/config_reader.h"
#include "hub/weight_map.h"
#include "job/job.h"
#include "tensor/parameter.h"

namespace brisk {

// Whether a config.json's model_type is that of an image encoder, also of one that is then refused (DeiT).
bool is_image_encoder_type(const std::string& model_type);

// What a config.json says of an image encoder, as options: image_encoder, image_size, ..., and its sizes as those of an
// encoder-decoder's (encoder_d_model, ...).
void read_image_encoder_config(const ConfigReader& config, ModelOptions& model);
// The other way, of options that are resolved. UserError where Hugging Face's model cannot have them.
nlohmann::ordered_json image_encoder_json(const ModelOptions& model);

// Hugging Face's names, which begin with `theirs`, of the parameters of an ImageEncoder whose names begin with `ours`.
// `image_encoder`: the option. Layer l is the files' layer `layers[l]`; empty: the layers as they are.
std::vector<WeightMap> image_encoder_weight_map(const std::string& image_encoder, const ParameterStore& store,
                                                const std::string& ours, const std::string& theirs,
                                                const std::vector<int64_t>& layers = {});

// Tensors of such files that no model needs: tables of numbers that follow from the configuration.
bool is_derived_tensor(const std::string& name);

}  // namespace brisk
