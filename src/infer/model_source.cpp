#include "infer/model_source.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fine_tuned.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/warm_start.h"
#include "hub/formats/llama2c.h"
#include "hub/formats/safetensors.h"
#include "hub/gguf/gguf_model.h"
#include "hub/huggingface/decoder.h"
#include "hub/huggingface/encoder.h"
#include "infer/label_file.h"
#include "infer/model_config.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kUsualLength = 1024;  // of a foreign model's texts, where it could read longer ones

// What a foreign model says about itself, as a job.
void describe(ModelSource& source, const std::string& path) {
  source.place = path;
  source.job.model = source.model;
  source.job.training.max_length = std::min(source.model.context, kUsualLength);
  source.job.name = fs::path(path).lexically_normal().filename().string();
  if (source.job.name.empty()) source.job.name = fs::path(path).lexically_normal().parent_path().filename().string();
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

ModelSource from_llama2c(const std::string& path) {
  const auto file = std::make_shared<Llama2cModel>(open_llama2c(path));
  ModelSource source;
  source.kind = "llama2.c file";
  source.model = model_options(*file);
  source.model.context = file->context;
  source.tokenizer = [path] { return load_tokenizer(tokenizer_beside(path)); };
  source.load_into = [file](ParameterStore& store) { brisk::load_into(*file, store); };
  describe(source, path);
  source.job.name = fs::path(path).stem().string();
  return source;
}

ModelSource from_gguf(const std::string& path) {
  const auto file = std::make_shared<GgufModel>(path);
  ModelSource source;
  source.kind = "GGUF file";
  source.model = file->options();
  source.tokenizer = [file] { return file->tokenizer(); };
  source.load_into = [file](ParameterStore& store) { file->load_into(store); };
  describe(source, path);
  source.job.name = fs::path(path).stem().string();
  return source;
}

ModelSource from_huggingface(const std::string& path) {
  const auto folder = std::make_shared<HuggingFaceModel>(path);
  ModelSource source;
  source.kind = "Hugging Face folder";
  source.model = folder->config().model;
  source.tokenizer = [path] { return load_tokenizer(path); };
  source.load_into = [folder](ParameterStore& store) { folder->load_into(store); };
  describe(source, path);
  return source;
}

ModelSource from_huggingface_encoder(const std::string& path) {
  const auto folder = std::make_shared<HuggingFaceEncoder>(path);
  const HuggingFaceEncoderConfig& config = folder->config();
  ModelSource source;
  source.kind = "Hugging Face folder";
  source.model = config.model;
  source.job.task = "classify";
  switch (folder->head()) {
    case HuggingFaceEncoderConfig::Head::classifier: source.labels = config.labels; break;
    case HuggingFaceEncoderConfig::Head::masked_words: source.job.task = "mlm"; break;
    default:  // to become a classifier, most likely: has_no_head()
      source.model.num_labels = 0;
      source.lone_pooler = folder->has_pooler();
  }
  source.tokenizer = [path] { return load_tokenizer(path); };
  source.load_into = [folder](ParameterStore& store) {
    const EncoderLoading loading = folder->load_into(store);
    if (loading.missing.empty() && loading.replaced.empty()) return;
    user_error(
        "{}: it has no {}, which its task needs; fine-tune it first ({{\"model\": {{\"from\": \"{}\"}}}} in a job)",
        folder->path(), loading.missing.empty() ? loading.replaced.front() : loading.missing.front(), folder->path());
  };
  source.start = [folder](ParameterStore& store, const std::vector<int64_t>& layers) {
    return folder->load_into(store, layers).lines();
  };
  source.job.training.optimizer = "adamw";
  source.job.data.text_field.clear();  // found in the table that it is asked about
  describe(source, path);
  return source;
}

ModelSource from_run(const std::string& path) {
  const bool is_checkpoint = file_exists(path + "/state.json");
  const fs::path given = fs::path(path).lexically_normal();
  const std::string run_path = is_checkpoint ? fs::absolute(given / "../..").lexically_normal().string() : path;
  const RunDirectory run = RunDirectory::open_for_reading(run_path);
  ModelSource source;
  source.kind = kRunSource;
  source.job = job_from_json_text(read_file(run.job_path()), run.job_path());
  resolve_defaults(source.job);
  source.model = source.job.model;
  const std::optional<std::string> checkpoint =
      is_checkpoint ? std::optional<std::string>(path) : best_checkpoint(run.path());
  if (!checkpoint)
    user_error("{}: no checkpoint in it yet: train on with `brisk train ... --output {} --resume`", path, path);
  source.place = *checkpoint;
  source.tokenizer = [tokenizer_path = run.tokenizer_path()] { return load_tokenizer(tokenizer_path); };
  source.load_into = [place = *checkpoint, scale = adapter_scale(source.job.training)](ParameterStore& store) {
    load_whole_model(place, store, scale);
  };
  if (source.model.is_encoder()) {
    source.labels = read_labels(run.path()).names();
    if (has_no_head(source.job))
      source.lone_pooler = SafetensorsFile(*checkpoint + "/model.safetensors").find("pooler.weight") != nullptr;
    source.start = [place = *checkpoint](ParameterStore& store, const std::vector<int64_t>& layers) {
      return load_encoder(place, store, layers).lines();
    };
  }
  return source;
}

// The keys of `model` into the job, unless it says something else.
void take(Job& job, const ModelOptions& model) {
  if (model.is_encoder() != (job.task != "language_model")) {
    user_error("{}: a {}, which task {} does not train: {}", job.model.from, model.type, job.task,
               model.is_encoder() ? "use task classify or mlm" : "name a bert, distilbert or roberta");
  }
  // As JSON, so that a key added to the model is here without being named.
  const auto json_of = [](const ModelOptions& options) {
    Job with;
    with.model = options;
    return Json::parse(job_to_json_text(with)).at("model");
  };
  const Json asked = json_of(job.model), there = json_of(model);
  std::string conflicts;
  for (const auto& [key, value] : there.items()) {
    if (key == "from" || key.ends_with("dropout") || key == "num_labels" || !job.given.contains("model." + key))
      continue;
    if (key == "type" && !model.is_encoder()) continue;  // gpt2 and llama are decoders by now
    if (key == "num_layers" && model.is_encoder() && job.model.num_layers < model.num_layers) continue;  // a student
    if (asked.at(key) == value) continue;
    conflicts += fmt::format("{}model.{} is {} there and {} in the job", conflicts.empty() ? "" : "; ", key,
                             value.dump(), asked.at(key).dump());
  }
  if (!conflicts.empty()) {
    user_error("{}: model.from decides the architecture: {}; leave out what comes from it", job.model.from, conflicts);
  }
  const ModelOptions before = job.model;
  job.model = model;
  job.model.from = before.from;
  job.model.num_labels = before.num_labels;
  if (job.given.contains("model.dropout")) job.model.dropout = before.dropout;
  if (job.given.contains("model.attention_dropout")) job.model.attention_dropout = before.attention_dropout;
  if (job.given.contains("model.classifier_dropout")) job.model.classifier_dropout = before.classifier_dropout;
  if (model.is_encoder() && job.given.contains("model.num_layers")) job.model.num_layers = before.num_layers;
  if (!job.given.contains("training.max_length")) {
    job.training.max_length = std::min(job.training.max_length, job.model.context);
  }
}

}  // namespace

ModelSource open_model_source(const std::string& path) {
  if (!file_exists(path))
    user_error(
        "{}: no such run directory, checkpoint, model folder or model file; brisk downloads nothing: copy the model's "
        "folder there, or name another place (--set model.from=DIR in a job)",
        path);
  if (is_gguf_file(path)) return from_gguf(path);
  if (!is_directory(path)) {
    const fs::path folder = fs::absolute(path).parent_path();
    if (path.ends_with(".safetensors") && file_exists((folder / "state.json").string()))
      user_error("{}: a part of a checkpoint; name its folder, {}", path, folder.string());
    return from_llama2c(path);
  }
  if (is_huggingface_encoder(path)) return from_huggingface_encoder(path);
  if (is_huggingface_folder(path)) return from_huggingface(path);
  if (!file_exists(path + "/job.json") && !file_exists(path + "/state.json")) {
    user_error("{}: not a run directory: it has no job.json; and no Hugging Face model: it has no config.json", path);
  }
  return from_run(path);
}

std::vector<std::string> take_model_from_source(Job& job, bool resume) {
  if (job.model.from.empty()) return {};
  const std::string saved = (job.output.empty() ? "runs/" + job.name : job.output) + "/job.json";
  if (resume && file_exists(saved)) {
    const Job before = job_from_json_text(read_file(saved), saved);
    if (before.model.from == job.model.from) take(job, before.model);
    return {};  // otherwise the run was started from something else, which resuming complains of
  }
  const ModelSource source = open_model_source(job.model.from);
  take(job, source.model);
  std::vector<std::string> lines = {fmt::format("model.from: {} ({}): {} layers, {} wide, vocabulary {}", source.place,
                                                source.kind, source.model.num_layers, job.model.d_model,
                                                job.model.vocab_size)};
  if (job.model.num_layers < source.model.num_layers) {
    lines.push_back(fmt::format("a student: its {} layers begin as layers {} of the {} there", job.model.num_layers,
                                fmt::join(spread_layers(source.model.num_layers, job.model.num_layers), ", "),
                                source.model.num_layers));
  }
  return lines;
}

std::vector<int64_t> spread_layers(int64_t layers_there, int64_t layers) {
  std::vector<int64_t> chosen;
  for (int64_t l = 0; l < layers; ++l) chosen.push_back(l * layers_there / layers);
  return chosen;
}

}  // namespace brisk
