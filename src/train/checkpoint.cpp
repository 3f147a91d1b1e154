#include "train/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "hub/safetensors.h"
#include "train/checkpoint_state.h"

namespace brisk {

namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kFirstMoment = "first_moment.";
constexpr const char* kSecondMoment = "second_moment.";
constexpr std::string_view kPrefix = "step-";
constexpr int kDigits = 8;

std::string folder_of(const std::string& run) { return run + "/checkpoints"; }
std::string name_of(int64_t step) { return fmt::format("{}{:0{}}", kPrefix, step, kDigits); }

// The step in "step-00000123"; nothing for any other name.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const bool digits = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || name.size() < kDigits || name.size() > 18) return std::nullopt;
  return std::stoll(std::string(name));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error && error.value() != ENOENT) user_error("{}: cannot list it: {}", folder, explain_errno(error.value()));
  return names;
}

// A name with a dot is no checkpoint, whatever state its files are in.
std::string partial_path(const std::string& run, int64_t step) {
  return fmt::format("{}/.{}.partial", folder_of(run), name_of(step));
}
std::string deleted_path(const std::string& run, int64_t step) {
  return fmt::format("{}/.{}.deleted", folder_of(run), name_of(step));
}
std::string replaced_path(const std::string& run, int64_t step) {
  return fmt::format("{}/.{}.replaced", folder_of(run), name_of(step));
}

// The parts of a flat array, under the names of their parameters.
void add_tensors(SafetensorsWriter& writer, const ParameterStore& store, const std::string& prefix,
                 const Tensor& flat) {
  Device& device = store.device();
  for (const auto& parameter : store.all()) {
    if (!parameter->spec.trained) continue;  // train/fine_tuned.h saves them once
    const auto* data = static_cast<const std::byte*>(flat.data) + parameter->offset * size_of(DType::f32);
    writer.add(prefix + parameter->spec.name, SafetensorsType::f32, {parameter->spec.rows, parameter->spec.cols},
               [&device, data](int64_t offset, std::span<std::byte> block) {
                 device.copy_out(block.data(), data + offset, std::ssize(block));
               });
  }
}

int64_t write_files(const std::string& folder, const ParameterStore& store, const CheckpointState& state) {
  const std::string step = fmt::format("{}", state.step);
  SafetensorsWriter model(folder + "/" + kModelFile);
  model.add_metadata("format", "pt");
  model.add_metadata("step", step);
  add_tensors(model, store, "", store.flat_master());
  const std::string text = checkpoint_state_to_json_text(state);
  int64_t bytes = model.finish() + std::ssize(text);
  if (store.is_training()) {
    SafetensorsWriter optimizer(folder + "/" + kOptimizerFile);
    optimizer.add_metadata("step", step);
    add_tensors(optimizer, store, kFirstMoment, store.flat_first_moment());
    add_tensors(optimizer, store, kSecondMoment, store.flat_second_moment());
    bytes += optimizer.finish();
  }
  write_file_atomically(folder + "/" + kStateFile, text);
  return bytes;
}

// Makes `partial` the checkpoint `path`, in one step where the file system can exchange two names.
void commit(const std::string& run, int64_t step, const std::string& partial, const std::string& path) {
  if (!file_exists(path)) return rename_file(partial, path);
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    sync_directory(folder_of(run));
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
    const std::vector<CheckpointPlace> places = list_checkpoints(run);
    if (!places.empty()) kept = fmt::format("the last one, of step {}, is kept", places.back().step);
  } catch (const UserError&) {
    kept = "earlier ones were not touched";
  }
  return fmt::format("the checkpoint of step {} was not saved: {}; {}", step, reason, kept);
}

// Finds the tensor of each parameter, checks it, and copies nothing yet.
class TensorsOfFile {
 public:
  TensorsOfFile(const std::string& path, const ParameterStore& store, std::vector<std::string> prefixes)
      : file_(path), prefixes_(std::move(prefixes)) {
    size_t expected = 0;
    for (const std::string& prefix : prefixes_) {
      for (const auto& parameter : store.all()) {
        if (!parameter->spec.trained) continue;
        check(prefix + parameter->spec.name, parameter->spec);
        ++expected;
      }
    }
    if (file_.entries().size() != expected) complain_of_strangers(store);
  }

  // Bytes of a part of a flat array.
  void copy_into(const ParameterStore& store, const std::string& prefix, const Tensor& flat) const {
    file_.advise_sequential();
    for (const auto& parameter : store.all()) {
      if (!parameter->spec.trained) continue;
      const SafetensorsEntry* entry = file_.find(prefix + parameter->spec.name);
      store.device().copy_in(static_cast<std::byte*>(flat.data) + parameter->offset * size_of(DType::f32), entry->data,
                             entry->bytes);
    }
  }

  void check_step(int64_t step) const {
    const auto found = file_.metadata().find("step");
    if (found == file_.metadata().end() || found->second != fmt::format("{}", step)) {
      user_error("{}: it is of step {}, expected {} as in {} beside it: files of two checkpoints were mixed",
                 file_.path(), found == file_.metadata().end() ? "none" : found->second, step, kStateFile);
    }
  }

 private:
  void check(const std::string& name, const ParameterSpec& spec) const {
    const SafetensorsEntry* entry = file_.find(name);
    if (entry == nullptr) {
      user_error("{}: it has no '{}', which the model has; is it a checkpoint of this job?", file_.path(), name);
    }
    if (entry->type != SafetensorsType::f32 || entry->shape != std::vector<int64_t>{spec.rows, spec.cols}) {
      user_error("{}: '{}' is {} [{}], expected F32 [{}, {}]; is it a checkpoint of this job?", file_.path(), name,
                 safetensors_type_name(entry->type), fmt::join(entry->shape, ", "), spec.rows, spec.cols);
    }
  }

  [[noreturn]] void complain_of_strangers(const ParameterStore& store) const {
    for (const SafetensorsEntry& entry : file_.entries()) {
      const bool known = std::any_of(prefixes_.begin(), prefixes_.end(), [&](const std::string& prefix) {
        if (!entry.name.starts_with(prefix)) return false;
        const Parameter* parameter = store.find(entry.name.substr(prefix.size()));
        return parameter != nullptr && parameter->spec.trained;
      });
      if (!known) {
        user_error("{}: it has '{}', which the model has not; is it a checkpoint of this job?", file_.path(),
                   entry.name);
      }
    }
    BRISK_CHECK(false, "{}: {} tensors", file_.path(), file_.entries().size());
    std::abort();
  }

  SafetensorsFile file_;
  std::vector<std::string> prefixes_;
};

struct CheckedCheckpoint {
  TensorsOfFile model, optimizer;
  CheckpointState state;
};

CheckedCheckpoint check_checkpoint(const std::string& path, const ParameterStore& store) {
  if (!is_directory(path)) user_error("{}: no such checkpoint; checkpoints lie in RUN/checkpoints/step-...", path);
  CheckedCheckpoint checked{TensorsOfFile(path + "/" + kModelFile, store, {""}),
                            TensorsOfFile(path + "/" + kOptimizerFile, store, {kFirstMoment, kSecondMoment}),
                            read_checkpoint_state(path)};
  checked.model.check_step(checked.state.step);
  checked.optimizer.check_step(checked.state.step);
  return checked;
}

// "; step-00000100 beside it is whole: ..." for the newest other checkpoint that loads.
std::string advice_on_damage(const std::string& checkpoint, const ParameterStore& store) {
  const std::filesystem::path path = std::filesystem::path(checkpoint).lexically_normal();
  const std::filesystem::path folder = path.parent_path();
  if (!step_of(path.filename().string())) return "";
  std::vector<CheckpointPlace> places = list_checkpoints(folder.parent_path().string());
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (name_of(place->step) == path.filename()) continue;
    try {
      check_checkpoint(place->path, store);
    } catch (const UserError&) {
      continue;
    }
    return fmt::format("\n{} is whole: remove {} and resume again to go on from step {}", place->path, checkpoint,
                       place->step);
  }
  return fmt::format("\nno other checkpoint in {} is whole", folder.string());
}

}  // namespace

SaveResult save_checkpoint(const std::string& run, const ParameterStore& store, const CheckpointState& state) {
  const std::string partial = partial_path(run, state.step);
  std::string reason;
  try {
    if (!is_directory(folder_of(run))) {
      make_directories(folder_of(run));
      sync_directory(run);
    }
    remove_directory_tree(partial);
    make_directories(partial);
    SaveResult result;
    result.bytes = write_files(partial, store, state);
    result.path = folder_of(run) + "/" + name_of(state.step);
    sync_directory(partial);
    commit(run, state.step, partial, result.path);
    return result;
  } catch (const UserError& error) {
    reason = error.what();
  } catch (const std::bad_alloc&) {
    reason = "no memory";
  }
  std::error_code ignored;  // what is left has a dot and is removed by the next save or start
  std::filesystem::remove_all(partial, ignored);
  SaveResult result;
  result.problem = save_problem(run, state.step, reason);
  return result;
}

std::string prune_checkpoints(const std::string& run, int64_t keep, int64_t best_step) {
  if (keep <= 0) return "";
  try {
    std::vector<CheckpointPlace> places = list_checkpoints(run);
    while (std::ssize(places) > keep) {
      const CheckpointPlace oldest = places.front();
      places.erase(places.begin());
      if (oldest.step == best_step) continue;  // kept besides the last ones
      const std::string deleted = deleted_path(run, oldest.step);
      remove_directory_tree(deleted);
      rename_file(oldest.path, deleted);
      remove_directory_tree(deleted);
    }
  } catch (const UserError& error) {
    return fmt::format("an old checkpoint was not removed: {}", error.what());
  }
  return "";
}

std::vector<CheckpointPlace> list_checkpoints(const std::string& run) {
  std::vector<CheckpointPlace> places;
  for (const std::string& name : names_in(folder_of(run))) {
    const std::optional<int64_t> step = step_of(name);
    const std::string path = folder_of(run) + "/" + name;
    if (step && is_directory(path)) places.push_back({*step, path});
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return places;
}

std::optional<std::string> latest_checkpoint(const std::string& run) {
  const std::vector<CheckpointPlace> places = list_checkpoints(run);
  if (places.empty()) return std::nullopt;
  return places.back().path;
}

std::optional<std::string> best_checkpoint(const std::string& run) {
  const std::vector<CheckpointPlace> places = list_checkpoints(run);
  if (places.empty()) return std::nullopt;
  const int64_t best_step = read_checkpoint_state(places.back().path).best_step;
  for (const CheckpointPlace& place : places) {
    if (place.step == best_step) return place.path;
  }
  return places.back().path;
}

void remove_stale_checkpoints(const std::string& run) {
  for (const std::string& name : names_in(folder_of(run))) {
    if (!name.starts_with(".step-")) continue;
    const std::string path = folder_of(run) + "/" + name;
    const std::string_view stem = std::string_view(name).substr(1, name.rfind('.') - 1);
    const bool replaced = name.ends_with(".replaced") && step_of(stem);
    const std::string original = folder_of(run) + "/" + std::string(stem);
    if (replaced && !file_exists(original)) {
      rename_file(path, original);
    } else {
      remove_directory_tree(path);
    }
  }
}

CheckpointState load_checkpoint(const std::string& checkpoint, ParameterStore& store) {
  BRISK_CHECK(store.is_training(), "a checkpoint has optimizer state");
  try {
    const CheckedCheckpoint checked = check_checkpoint(checkpoint, store);
    checked.model.copy_into(store, "", store.flat_master());
    checked.optimizer.copy_into(store, kFirstMoment, store.flat_first_moment());
    checked.optimizer.copy_into(store, kSecondMoment, store.flat_second_moment());
    return checked.state;
  } catch (const UserError& error) {
    throw UserError(error.what() + advice_on_damage(checkpoint, store));
  }
}

void load_model(const std::string& checkpoint, ParameterStore& store) {
  const std::string path = is_directory(checkpoint) ? checkpoint + "/" + kModelFile : checkpoint;
  TensorsOfFile(path, store, {""}).copy_into(store, "", store.flat_master());
}

bool has_optimizer_state(const std::string& checkpoint) { return file_exists(checkpoint + "/" + kOptimizerFile); }

int64_t checkpoint_bytes(int64_t parameter_count) {
  constexpr int64_t kHeadersAndState = int64_t{1} << 20;
  return 3 * 4 * parameter_count + kHeadersAndState;
}

int64_t checkpoints_bytes(int64_t parameter_count, int64_t save_total_limit, int64_t saves) {
  const int64_t kept_at_most = save_total_limit > 0 ? save_total_limit + 2 : saves;
  return std::min(kept_at_most, saves) * checkpoint_bytes(parameter_count);
}

}  // namespace brisk
