// The settings of a run that have a part in it (a run without Muon has no rate of Muon's), and which of them are what
// brisk would have chosen anyway.
//
//   for (const Setting& setting : read_settings(read_file(path, file_kind::job), path, notes)) ...
#pragma once

#include <string>
#include <vector>

namespace brisk {

struct Setting {
  std::string path;         // "training.batch_size"
  std::string value;        // as written in JSON
  std::string help;         // what it decides; empty where this brisk does not know the key
  bool is_default = false;  // a job without the key has the same value
};

// Of a run's job.json. Where this brisk cannot read it as a job (a key of a later one), its keys as they stand.
std::vector<Setting> read_settings(const std::string& job_text, const std::string& job_path,
                                   std::vector<std::string>& notes);

}  // namespace brisk
