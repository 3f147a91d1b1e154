#include "hub/formats/weight_files.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPickled = "pytorch_model.bin";
constexpr const char* kIndexEnding = ".index.json";

}  // namespace

std::map<std::string, std::string> weight_index_from_json_text(const std::string& text, const std::string& path) {
  const Json json = parse_json(text, path, "fetch the file again");
  const auto found = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_object() || found->empty()) {
    user_error("{}: expected an object with a weight_map of tensors and their files; fetch the file again", path);
  }
  std::map<std::string, std::string> shards;
  for (const auto& [name, file] : found->items()) {
    const bool plain =
        file.is_string() && !file.get<std::string>().empty() && file.get<std::string>().find('/') == std::string::npos;
    if (!plain) {
      user_error("{}: weight_map says that '{}' is in {}, expected the name of a file next to it", path,
                 printable(name), json_in_message(file));
    }
    shards[name] = file.get<std::string>();
  }
  return shards;
}

WeightFiles::WeightFiles(const std::string& folder) {
  const auto there = [&](const std::string& name) {
    return file_exists(folder + "/" + name) || file_exists(folder + "/" + name + kIndexEnding);
  };
  if (there(kWeightsFile)) {
    open(safetensors_, folder, kWeightsFile);
  } else if (there(kPickled)) {
    open(pickled_, folder, kPickled);
  } else {
    user_error("{}: it has neither {} nor {} (nor the {} of shards); fetch the folder again", folder, kWeightsFile,
               kPickled, kIndexEnding);
  }
}

template <typename File>
void WeightFiles::open(std::vector<File>& files, const std::string& folder, const std::string& single) {
  if (!file_exists(folder + "/" + single)) {
    open_shards(files, folder, single + kIndexEnding);
    return;
  }
  files.emplace_back(folder + "/" + single);
  for (const SafetensorsEntry& entry : files.front().entries()) entries_[entry.name] = &entry;
}

template <typename File>
void WeightFiles::open_shards(std::vector<File>& files, const std::string& folder, const std::string& index) {
  const std::map<std::string, std::string> names =
      weight_index_from_json_text(read_file(folder + "/" + index, file_kind::index), folder + "/" + index);
  std::map<std::string, size_t> place;
  for (const auto& [tensor, file] : names) {
    if (place.contains(file)) continue;
    if (!file_exists(folder + "/" + file)) {
      user_error("{}/{}: no such file; {} says that it holds '{}': fetch it", folder, file, index, tensor);
    }
    place[file] = files.size();
    files.emplace_back(folder + "/" + file);
  }
  for (const auto& [tensor, file] : names) {
    const File& shard = files[place[file]];
    const SafetensorsEntry* entry = shard.find(tensor);
    if (entry == nullptr) {
      user_error("{}: it has no '{}', though {} says so; fetch the folder again", shard.path(), tensor, index);
    }
    entries_[tensor] = entry;
  }
}

const SafetensorsEntry* WeightFiles::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second;
}

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

void WeightFiles::check_bytes() const {
  for (const TorchFile& file : pickled_) file.check_bytes();
}

void WeightFiles::advise_sequential() const {
  for (const SafetensorsFile& file : safetensors_) file.advise_sequential();
  for (const TorchFile& file : pickled_) file.advise_sequential();
}

}  // namespace brisk
