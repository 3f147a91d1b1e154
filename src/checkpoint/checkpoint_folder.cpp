#include "checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr int kDigits = 8;

}  // namespace

std::string folder_of_checkpoints(const std::string& run) { return run + "/checkpoints"; }
std::string name_of_checkpoint(int64_t step) { return fmt::format("{}{:0{}}", kPrefix, step, kDigits); }
std::string checkpoint_path(const std::string& run, int64_t step) {
  return folder_of_checkpoints(run) + "/" + name_of_checkpoint(step);
}

std::optional<int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const bool digits = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || name.size() < kDigits || name.size() > 18) return std::nullopt;
  return std::stoll(std::string(name));
}

std::optional<int64_t> hidden_step_of(std::string_view name, std::string_view ending) {
  if (!name.starts_with('.') || !name.ends_with(ending)) return std::nullopt;
  return step_of_name(name.substr(1, name.size() - 1 - ending.size()));
}

std::string partial_path(const std::string& run, int64_t step) {
  return fmt::format("{}/.{}.partial", folder_of_checkpoints(run), name_of_checkpoint(step));
}
std::string deleted_path(const std::string& run, int64_t step) {
  return fmt::format("{}/.{}.deleted", folder_of_checkpoints(run), name_of_checkpoint(step));
}

namespace {
std::string replaced_path(const std::string& run, int64_t step) {
  return fmt::format("{}/.{}.replaced", folder_of_checkpoints(run), name_of_checkpoint(step));
}
}  // namespace

// In one step where the file system can exchange two names. What counts as not saved is not there: where the folder cannot be
// flushed, `partial` has its name again.
void commit_partial_folder(const std::string& run, int64_t step) {
  const std::string partial = partial_path(run, step), path = checkpoint_path(run, step);
  sync_directory(partial);
  if (!file_exists(path)) {
    try {
      return rename_file(partial, path);
    } catch (...) {
      ::rename(path.c_str(), partial.c_str());
      throw;
    }
  }
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0;
  };
  if (exchange()) {
    try {
      sync_directory(folder_of_checkpoints(run));
    } catch (...) {
      exchange();
      throw;
    }
    return remove_directory_tree(partial);  // the old one by now
  }
  // Without exchange there is an instant with neither name; remove_stale_checkpoints puts the old one back.
  const std::string replaced = replaced_path(run, step);
  remove_directory_tree(replaced);
  rename_file(path, replaced);
  rename_file(partial, path);
  remove_directory_tree(replaced);
}

std::string save_problem(const std::string& run, int64_t step, const std::string& reason) {
  std::string kept = "there is no earlier one";
  try {
    const std::vector<CheckpointPath> places = list_checkpoints(run);
    if (!places.empty()) kept = fmt::format("the last one, of step {}, is kept", places.back().step);
  } catch (const UserError&) {
    kept = "earlier ones were not touched";
  }
  return fmt::format("the checkpoint of step {} was not saved: {}; {}", step, reason, kept);
}

void make_partial_folder(const std::string& run, int64_t step, bool& made) {
  const std::string folder = folder_of_checkpoints(run), partial = partial_path(run, step);
  if (!is_directory(folder)) {
    make_directories(folder);
    sync_directory(run);
  }
  refuse_link(folder);
  remove_directory_tree(partial);
  made = true;
  make_directories(partial);
}

SafetensorsWriter writer_of(const std::string& path, int64_t step, bool is_model,
                            const std::vector<CheckpointTensor>& tensors) {
  SafetensorsWriter writer(path);
  if (is_model) writer.add_metadata("format", "pt");
  writer.add_metadata("step", fmt::format("{}", step));
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.host != nullptr) {
      writer.add(tensor.name, SafetensorsType::f32, {tensor.rows, tensor.cols}, tensor.host);
    } else {
      writer.add(tensor.name, SafetensorsType::f32, {tensor.rows, tensor.cols}, tensor.read);
    }
  }
  return writer;
}

}  // namespace brisk
