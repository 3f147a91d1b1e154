// Maps the parameters of brisk's models to the tensors of another program's checkpoints; used for import and export.
//
//   const std::vector<WeightMap> map = huggingface_weight_map(config, "model.");
//   check_weights(map, source);                                // before there is memory for them
//   load_weights(map, source, store);                          // every parameter filled, or UserError and none changed
//   for (const WeightMap& entry : map) {
//     for (const StoredTensor& tensor : stored_tensors(entry, store, SafetensorsType::bf16)) ...
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "hub/finite.h"
#include "hub/formats/safetensors.h"
#include "tensor/parameter.h"

namespace brisk {

// A tensor of the other program that is part of a parameter of ours.
struct WeightPart {
  std::string name;         // there; empty: it has none, which means zeros
  int64_t outputs = 0;      // rows of ours; of a bias or a gain its length
  int64_t inputs = 0;       // columns of ours; 0: a bias or a gain
  bool transposed = false;  // stored there as [inputs, outputs] (GPT-2's Conv1D)
  // > 0: the outputs are heads of this width, and there the first of every rotary pair come before the second ones.
  int64_t split_head_width = 0;
  std::vector<int64_t> shape_there =
      {};  // where it is neither a matrix nor a vector; the order of the numbers is the same

  int64_t count() const { return outputs * (inputs > 0 ? inputs : 1); }
  std::vector<int64_t> shape() const;  // there
};

struct WeightMap {
  std::string parameter;          // ours; one that the store lacks is written as zeros
  std::vector<WeightPart> parts;  // one after the other they are the parameter
};

// A checkpoint of another program, as load_weights sees it.
struct WeightSource {
  std::string path;
  std::function<const SafetensorsEntry*(const std::string& name)> find;  // nullptr if there is none
  NonFinite nonfinite = NonFinite::refuse;
};

// UserError where a tensor is missing or has another shape or type.
void check_weights(const std::vector<WeightMap>& map, const WeightSource& source);

// UserError where a tensor belongs to a layer beyond those of the configuration: "h.2." with `before` = "h." of 2.
void check_layers(const std::vector<std::string>& names, const std::string& before, int64_t layers,
                  const std::string& path);

// Fills the masters of `store` from f32, f16 or bf16 tensors, checked first: UserError, before anything changes, where
// check_weights() finds something or a number is not finite. Adapters and the parameters named in `except` are left alone. Compute copies,
// where the store has them, are stale afterwards.
void load_weights(const std::vector<WeightMap>& map, const WeightSource& source, ParameterStore& store,
                  const std::set<std::string>& except = {});

// A tensor to write: its bytes are made when they are asked for.
struct StoredTensor {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<int64_t> shape;
  // Both are a UserError if a number does not fit fp16.
  std::function<std::vector<std::byte>()> bytes;
  SafetensorsWriter::Fill block;  // some of them alone; none if the order of the elements differs there
};
std::vector<StoredTensor> stored_tensors(const WeightMap& entry, const ParameterStore& store, SafetensorsType type);

// `tensor` as a source of SafetensorsWriter and GgufWriter: made block by block, or where that is not possible made
// once, given out in blocks, and forgotten.
SafetensorsWriter::Fill fill_from(const StoredTensor& tensor);

}  // namespace brisk
