#include "train/trained_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/isa.h"
#include "hub/llama2c.h"
#include "ops/parameters.h"
#include "train/checkpoint.h"
#include "train/choices.h"
#include "train/model_config.h"
#include "train/run_directory.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;

void build(TrainedModel& model, DType compute_type) {
  model.decoder =
      std::make_unique<Decoder>(decoder_config(model.job.model, model.job.training.max_length), model.store);
  model.store.allocate(cpu_device(), {}, compute_type, ParameterStore::Purpose::inference);
}

DType trained_type(const std::string& checkpoint) {
  if (!has_bf16_instructions(active_isa())) return DType::f32;
  return choices_from_json(read_checkpoint_state(checkpoint).choices_json, checkpoint).compute_type;
}

std::string tokenizer_beside(const std::string& path) {
  std::string found;
  std::error_code error;
  // A folder that cannot be listed has no tokenizer to be found.
  for (fs::directory_iterator entry(fs::absolute(path).parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("tok") || !name.ends_with(".bin")) continue;
    if (!found.empty())
      user_error("{}: two tokenizers beside it ({} and {}): choose one with --tokenizer", path, found, name);
    found = entry->path().string();
  }
  if (found.empty()) user_error("{}: no tok*.bin beside it: name the tokenizer with --tokenizer FILE", path);
  return found;
}

// Ids beyond the embedding would be read from beyond it. A model may have rows to spare: vocabularies are padded.
void refuse_other_vocabulary(const TrainedModel& model, const std::string& path) {
  const int64_t entries = model.tokenizer->vocab_size(), rows = model.job.model.vocab_size;
  if (entries <= rows) return;
  user_error("{}: a vocabulary of {}, but the tokenizer has {} entries: name the one it was trained with (--tokenizer)",
             path, rows, entries);
}

}  // namespace

std::unique_ptr<TrainedModel> open_trained_model(const std::string& path, const std::string& tokenizer_path,
                                                 bool as_trained) {
  auto model = std::make_unique<TrainedModel>();
  if (!file_exists(path)) user_error("{}: no such run directory or model file", path);
  if (!is_directory(path)) {
    const fs::path folder = fs::absolute(path).parent_path();
    if (path.ends_with(".safetensors") && file_exists((folder / "state.json").string()))
      user_error("{}: a part of a checkpoint; name its folder, {}", path, folder.string());
    const Llama2cModel file = open_llama2c(path);
    model->job.model = model_options(file);
    model->job.training.max_length = file.context;
    model->tokenizer = load_tokenizer(tokenizer_path.empty() ? tokenizer_beside(path) : tokenizer_path);
    refuse_other_vocabulary(*model, path);
    build(*model, DType::f32);
    load_into(file, model->store);
    model->source = path;
    return model;
  }
  const fs::path given = fs::path(path).lexically_normal();
  const bool is_checkpoint = file_exists(path + "/state.json");
  const std::string run_path = is_checkpoint ? fs::absolute(given / "../..").lexically_normal().string() : path;
  const RunDirectory run = RunDirectory::open_for_reading(run_path);
  model->job = job_from_json_text(read_file(run.job_path()), run.job_path());
  resolve_defaults(model->job);
  model->tokenizer = load_tokenizer(tokenizer_path.empty() ? run.tokenizer_path() : tokenizer_path);
  refuse_other_vocabulary(*model, path);
  const std::optional<std::string> checkpoint =
      is_checkpoint ? std::optional<std::string>(path) : best_checkpoint(run.path());
  if (!checkpoint)
    user_error("{}: no checkpoint in it yet: train on with `brisk train ... --output {} --resume`", path, path);
  build(*model, as_trained ? trained_type(*checkpoint) : DType::f32);
  load_model(*checkpoint, model->store);
  refresh_compute_copies(model->store);
  model->source = *checkpoint;
  return model;
}

}  // namespace brisk
