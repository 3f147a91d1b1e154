#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_state.h"
#include "checkpoint/checksum.h"
#include "hub/formats/safetensors.h"

namespace brisk {

namespace {

// Writes the tensors to a file; `sum` is the checksum of its bytes, taken while they are written.
int64_t write_tensors(const std::string& path, int64_t step, bool is_model,
                      const std::vector<CheckpointTensor>& tensors, std::string& sum) {
  SafetensorsWriter writer = writer_of(path, step, is_model, tensors);
  RunningChecksum running;
  const int64_t bytes = writer.finish([&](std::span<const std::byte> piece) { running.add(piece); });
  sum = checksum_text(running.value());
  return bytes;
}

int64_t write_files(const std::string& folder, const CheckpointTensors& tensors, CheckpointState state) {
  int64_t bytes = write_tensors(folder + "/" + kModelFile, state.step, true, tensors.model, state.model_checksum);
  if (tensors.has_optimizer) {
    bytes +=
        write_tensors(folder + "/" + kOptimizerFile, state.step, false, tensors.optimizer, state.optimizer_checksum);
  }
  const std::string text = checkpoint_state_to_json_text(state);
  bytes += std::ssize(text);
  write_file_atomically(folder + "/" + kStateFile, text);
  return bytes;
}

// Finds the tensor of each parameter, checks it, and copies nothing yet.
class TensorsOfFile {
 public:
  struct Kind {
    std::string prefix;
    TensorOfParameter which;
  };

  TensorsOfFile(const std::string& path, const ParameterStore& store, std::vector<Kind> kinds)
      : file_(path), kinds_(std::move(kinds)) {
    size_t expected = 0;
    for (const Kind& kind : kinds_) {
      for (const auto& parameter : store.all()) {
        if (!is_saved(*parameter, kind.which)) continue;
        check(kind.prefix + parameter->spec.name, parameter->spec);
        ++expected;
      }
    }
    if (file_.entries().size() != expected) complain_of_strangers(store);
  }

  void copy_into(const ParameterStore& store, const FlatRange& range = {}) const {
    file_.advise_sequential();
    for (const Kind& kind : kinds_) {
      for (const auto& parameter : store.all()) {
        const FlatRange::Elements elements = range.of(*parameter);
        if (!is_saved(*parameter, kind.which) || elements.count == 0) continue;
        const SafetensorsEntry* entry = file_.find(kind.prefix + parameter->spec.name);
        const Tensor& target = parameter.get()->*kind.which;
        if (target) {
          const int64_t offset = elements.first * size_of(DType::f32);
          store.device().copy_in(static_cast<char*>(target.data) + offset,
                                 static_cast<const char*>(entry->data) + offset, elements.count * size_of(DType::f32));
          continue;
        }
        std::vector<float> numbers(static_cast<size_t>(parameter->count()));
        std::memcpy(numbers.data(), entry->data, static_cast<size_t>(entry->bytes));
        store.write(*parameter, 0, numbers);
      }
    }
  }

  void check_step(int64_t step) const {
    const auto found = file_.metadata().find("step");
    if (found == file_.metadata().end() || found->second != fmt::format("{}", step)) {
      user_error("{}: it belongs to step {}, expected {} as in {} next to it: files of two checkpoints were mixed",
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
      const bool known = std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
        if (!entry.name.starts_with(kind.prefix)) return false;
        const Parameter* parameter = store.find(entry.name.substr(kind.prefix.size()));
        return parameter != nullptr && is_saved(*parameter, kind.which);
      });
      if (!known) {
        user_error("{}: it has '{}', which the model does not have; is it a checkpoint of this job?", file_.path(),
                   entry.name);
      }
    }
    BRISK_CHECK(false, "{}: {} tensors", file_.path(), file_.entries().size());
    std::abort();
  }

  SafetensorsFile file_;
  std::vector<Kind> kinds_;
};

const std::vector<TensorsOfFile::Kind> kMasters = {{"", &Parameter::master}};

struct CheckedCheckpoint {
  TensorsOfFile model, optimizer;
  CheckpointState state;
};

// `expected` as state.json has it.
void check_bytes(const std::string& path, const std::string& expected) {
  if (expected.empty()) return;  // of an earlier brisk
  const std::string found = checksum_of_file(path);
  if (found == expected) return;
  user_error("{}: it is not what was saved (checksum {}, expected {}): the disk or a copy changed them", path, found,
             expected);
}

CheckedCheckpoint check_checkpoint(const std::string& path, const ParameterStore& store, bool checks_moments = true) {
  if (!is_directory(path)) user_error("{}: no such checkpoint; checkpoints lie in RUN/checkpoints/step-...", path);
  CheckedCheckpoint checked{
      TensorsOfFile(path + "/" + kModelFile, store, kMasters),
      TensorsOfFile(path + "/" + kOptimizerFile, store,
                    {{kFirstMomentPrefix, &Parameter::first_moment}, {kSecondMomentPrefix, &Parameter::second_moment}}),
      read_checkpoint_state(path)};
  checked.model.check_step(checked.state.step);
  checked.optimizer.check_step(checked.state.step);
  check_bytes(path + "/" + kModelFile, checked.state.model_checksum);
  if (checks_moments) check_bytes(path + "/" + kOptimizerFile, checked.state.optimizer_checksum);
  return checked;
}

// "; step-00000100 next to it is intact: ..." for the newest other checkpoint that loads.
std::string advice_on_damage(const std::string& checkpoint, const ParameterStore& store) {
  const std::filesystem::path path = std::filesystem::path(checkpoint).lexically_normal();
  const std::filesystem::path folder = path.parent_path();
  if (!step_of_name(path.filename().string())) return "";
  std::vector<CheckpointPath> places = list_checkpoints(folder.parent_path().string());
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (name_of_checkpoint(place->step) == path.filename()) continue;
    try {
      check_checkpoint(place->path, store);
    } catch (const UserError&) {
      continue;
    }
    return fmt::format("\n{} is intact: remove {} and resume again to continue from step {}", place->path, checkpoint,
                       place->step);
  }
  return fmt::format("\nno other checkpoint in {} is intact", folder.string());
}

void remove_checkpoint(const std::string& run, const CheckpointPath& place) {
  const std::string deleted = deleted_path(run, place.step);
  remove_directory_tree(deleted);
  rename_file(place.path, deleted);
  remove_directory_tree(deleted);
}

}  // namespace

SaveResult save_checkpoint(const std::string& run, const ParameterStore& store, const CheckpointState& state) {
  return save_checkpoint(run, tensors_of(store), state);
}

SaveResult save_checkpoint(const std::string& run, const CheckpointTensors& tensors, const CheckpointState& state) {
  const std::string partial = partial_path(run, state.step);
  std::string reason;
  bool made = false;  // what is removed is what was made here
  try {
    make_partial_folder(run, state.step, made);
    SaveResult result;
    result.bytes = write_files(partial, tensors, state);
    result.path = checkpoint_path(run, state.step);
    commit_partial_folder(run, state.step);
    return result;
  } catch (const UserError& error) {
    reason = error.what();
  } catch (const std::bad_alloc&) {
    reason = "no memory";
  }
  std::error_code ignored;  // what is left has a dot and is removed by the next save or start
  if (made) std::filesystem::remove_all(partial, ignored);
  SaveResult result;
  result.problem = save_problem(run, state.step, reason);
  return result;
}

std::string prune_checkpoints(const std::string& run, int64_t keep, int64_t best_step) {
  if (keep <= 0) return "";
  const auto problem = [](const char* reason) { return fmt::format("an old checkpoint was not removed: {}", reason); };
  try {
    for (const std::string& name :
         names_in(folder_of_checkpoints(run))) {  // what could not be removed at an earlier time
      if (hidden_step_of(name, ".deleted")) remove_directory_tree(folder_of_checkpoints(run) + "/" + name);
    }
    std::vector<CheckpointPath> places = list_checkpoints(run);
    while (std::ssize(places) > keep) {
      const CheckpointPath oldest = places.front();
      places.erase(places.begin());
      if (oldest.step == best_step) continue;  // kept besides the last ones
      remove_checkpoint(run, oldest);
    }
  } catch (const UserError& error) {
    return problem(error.what());
  } catch (const std::bad_alloc&) {
    return problem("no memory");
  }
  return "";
}

void remove_checkpoints_after(const std::string& run, int64_t step) {
  std::vector<CheckpointPath> places = list_checkpoints(run);
  // The last one first: a process killed in between resumes from one that is still part of the same curve.
  for (; !places.empty() && places.back().step > step; places.pop_back()) remove_checkpoint(run, places.back());
}

std::vector<CheckpointPath> list_checkpoints(const std::string& run) {
  std::vector<CheckpointPath> places;
  for (const std::string& name : names_in(folder_of_checkpoints(run))) {
    const std::optional<int64_t> step = step_of_name(name);
    const std::string path = folder_of_checkpoints(run) + "/" + name;
    if (step && is_directory(path)) places.push_back({*step, path});
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return places;
}

std::optional<std::string> latest_checkpoint(const std::string& run) {
  const std::vector<CheckpointPath> places = list_checkpoints(run);
  if (places.empty()) return std::nullopt;
  return places.back().path;
}

std::optional<std::string> best_checkpoint(const std::string& run) {
  const std::vector<CheckpointPath> places = list_checkpoints(run);
  if (places.empty()) return std::nullopt;
  const int64_t best_step = read_checkpoint_state(places.back().path).best_step;
  for (const CheckpointPath& place : places) {
    if (place.step == best_step) return place.path;
  }
  return places.back().path;
}

void remove_stale_checkpoints(const std::string& run) {
  refuse_link(folder_of_checkpoints(run));
  for (const std::string& name : names_in(folder_of_checkpoints(run))) {
    const std::string path = folder_of_checkpoints(run) + "/" + name;
    const std::string_view stem = std::string_view(name).substr(name.starts_with('.') ? 1 : 0, name.rfind('.') - 1);
    const bool replaced = name.ends_with(".replaced");
    // Nothing but what save_checkpoint() and remove_checkpoint() make.
    if (!name.starts_with('.') || !step_of_name(stem)) continue;
    if (!replaced && !name.ends_with(".partial") && !name.ends_with(".deleted")) continue;
    const std::string original = folder_of_checkpoints(run) + "/" + std::string(stem);
    if (replaced && !file_exists(original)) {
      rename_file(path, original);
    } else {
      remove_directory_tree(path);
    }
  }
}

CheckpointState load_checkpoint(const std::string& checkpoint, ParameterStore& store, const FlatRange& moments,
                                bool checks_moments) {
  BRISK_CHECK(store.is_training(), "a checkpoint has optimizer state");
  try {
    const CheckedCheckpoint checked = check_checkpoint(checkpoint, store, checks_moments);
    checked.model.copy_into(store);
    checked.optimizer.copy_into(store, moments);
    return checked.state;
  } catch (const UserError& error) {
    throw UserError(error.what() + advice_on_damage(checkpoint, store));
  }
}

void load_model(const std::string& checkpoint, ParameterStore& store) {
  const std::string path = is_directory(checkpoint) ? checkpoint + "/" + kModelFile : checkpoint;
  const TensorsOfFile tensors(path, store, kMasters);
  if (is_directory(checkpoint) && file_exists(checkpoint + "/" + kStateFile)) check_model_bytes(checkpoint);
  tensors.copy_into(store);
}

void check_model_bytes(const std::string& checkpoint) {
  check_bytes(checkpoint + "/" + kModelFile, read_checkpoint_state(checkpoint).model_checksum);
}

bool has_optimizer_state(const std::string& checkpoint) { return file_exists(checkpoint + "/" + kOptimizerFile); }

int64_t checkpoint_bytes(int64_t tensor_bytes) {
  constexpr int64_t kHeadersAndState = int64_t{1} << 20;
  return tensor_bytes + kHeadersAndState;
}

int64_t checkpoints_bytes(int64_t tensor_bytes, int64_t save_total_limit, int64_t saves) {
  const int64_t kept_at_most = save_total_limit > 0 ? save_total_limit + 2 : saves;
  return std::min(kept_at_most, saves) * checkpoint_bytes(tensor_bytes);
}

}  // namespace brisk
