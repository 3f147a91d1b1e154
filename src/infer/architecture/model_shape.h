// What the model section of a job says of every transformer here, as fields of an architecture's configuration.
//
//   auto config = config_with_shape<DecoderConfig>(job.model);
#pragma once

#include "job/job.h"

namespace brisk {

template <typename Config>
Config config_with_shape(const ModelOptions& model) {
  Config config;
  config.vocab_size = model.vocab_size;
  config.d_model = model.d_model;
  config.num_layers = model.num_layers;
  config.num_heads = model.num_heads;
  config.d_ff = model.d_ff;
  config.max_length = model.context;
  config.norm_epsilon = model.norm_epsilon;
  config.dropout = model.dropout;
  using FeedForward = typename Config::FeedForward;
  config.feed_forward = model.activation == "relu"       ? FeedForward::relu
                        : model.activation == "gelu_erf" ? FeedForward::gelu_erf
                                                         : FeedForward::gelu_tanh;
  return config;
}

}  // namespace brisk
