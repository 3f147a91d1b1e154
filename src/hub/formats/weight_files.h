// The weights of a Hugging Face folder, whichever files hold them: model.safetensors, its shards with their index, or
// the same of pytorch_model.bin (hub/formats/torch_file.h).
//
//   const WeightFiles files("bert-base-uncased");        // UserError if something is missing or damaged
//   const SafetensorsEntry* table = files.find("bert.embeddings.word_embeddings.weight");
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hub/formats/safetensors.h"
#include "hub/formats/torch_file.h"

namespace brisk {

inline constexpr const char* kWeightsFile = "model.safetensors";

// The file of each tensor, as the index of shards says. `path` is named in errors.
std::map<std::string, std::string> weight_index_from_json_text(const std::string& text, const std::string& path);

class WeightFiles {
 public:
  explicit WeightFiles(const std::string& folder);

  const SafetensorsEntry* find(std::string_view name) const;  // nullptr if there is none
  std::vector<std::string> names() const;                     // of all tensors, sorted
  void advise_sequential() const;                             // before reading all of it
  // UserError where the bytes of a file are not those of its checksums, which pytorch_model.bin has.
  void check_bytes() const;

 private:
  template <typename File>
  void open(std::vector<File>& files, const std::string& folder, const std::string& single);
  template <typename File>
  void open_shards(std::vector<File>& files, const std::string& folder, const std::string& index);

  std::vector<SafetensorsFile> safetensors_;
  std::vector<TorchFile> pickled_;
  std::map<std::string, const SafetensorsEntry*, std::less<>> entries_;
};

}  // namespace brisk
