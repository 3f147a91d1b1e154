// What the frozen layers of an encoder make of the texts of a table: computed once, in the number format of the run,
// and cached next to the tokens, for an encoder that goes on from there (EncoderConfig::cached_layers).
//
//   const FrozenLayers frozen(config, layers, DType::f32, [&](ParameterStore& store) { source.start(store, {}, NonFinite::refuse); });
//   if (frozen.file_bytes(examples, 128) < disk_free_bytes(directory))
//     sequences.read_inputs(frozen.rows_of(examples, 128), frozen.of_picked_rows());
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "data/examples/example_activations.h"
#include "data/examples/examples.h"
#include "models/encoder.h"
#include "tensor/parameter.h"

namespace brisk {

class FrozenLayers {
 public:
  // The first `layers` layers; `load` fills the masters of an encoder of this configuration without a head.
  FrozenLayers(EncoderConfig config, int64_t layers, DType compute_type,
               const std::function<void(ParameterStore&)>& load);

  bool of_picked_rows() const { return layers_ == config_.num_layers; }  // one row a text: there is no layer above

  // Of all rows of the data that `examples` are of, cut at max_length. Made where they are missing.
  std::shared_ptr<const ExampleActivations> rows_of(const ExampleSet& examples, int64_t max_length) const;
  int64_t file_bytes(const ExampleSet& examples, int64_t max_length) const;
  bool are_there(const ExampleSet& examples, int64_t max_length) const;

 private:
  uint64_t key_of(const ExampleSet& examples, int64_t max_length) const;
  ExampleActivationsShape shape_of(const ExampleSet& all, int64_t max_length) const;
  void make(const ExampleSet& all, int64_t max_length, ExampleActivationsWriter& writer) const;

  EncoderConfig config_;
  int64_t layers_;
  ParameterStore store_;
  Encoder encoder_;
  uint64_t weights_key_ = 0;
};

}  // namespace brisk
