// The data.pkl of a torch.save file: which tensors there are, and where their data is. A pickle is a program for a
// stack machine that can call any Python function; the interpreter here knows the few opcodes that a dictionary of
// tensors uses and the handful of names that it calls, evaluates them itself, and refuses everything else by name.
// Nothing in the file is ever executed.
//
//   for (const PickledTensor& tensor : read_tensor_pickle(pickle, "pytorch_model.bin")) {
//     ... the record "archive/data/" + tensor.storage holds it, from element tensor.offset on
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hub/formats/safetensors.h"

namespace brisk {

struct PickledTensor {
  std::string name;
  std::string storage;  // several tensors may share one
  SafetensorsType type = SafetensorsType::f32;
  int64_t storage_count = 0;  // elements of the storage
  int64_t offset = 0;         // elements before the first one
  // As many as dimensions, all of them 0 or more; `offset` and these may still lead outside of the storage.
  std::vector<int64_t> shape, strides;
};

// The tensors of the dictionary that the pickle makes, in its order; numbers and texts in it are passed over. `file` is
// named in errors. UserError if the pickle is damaged, makes something else, or asks for anything to be run.
std::vector<PickledTensor> read_tensor_pickle(std::span<const std::byte> pickle, const std::string& file);

}  // namespace brisk
