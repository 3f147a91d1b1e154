#include "infer/open/model_source.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/text/plural.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fine_tuned.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/run_files.h"
#include "checkpoint/warm_start.h"
#include "hub/formats/safetensors.h"
#include "infer/architecture/architecture.h"
#include "infer/open/label_file.h"
#include "infer/optimizer_options.h"
#include "job/job_conditions.h"
#include "job/job_options.h"
#include "models/model.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualLength = 1024;  // of a foreign model's texts, where it could read longer ones

ModelSource from_run(const std::string& path) {
  const bool is_checkpoint = file_exists(path + "/state.json");
  const fs::path given = fs::path(path).lexically_normal();
  const std::string run_path = is_checkpoint ? fs::absolute(given / "../..").lexically_normal().string() : path;
  const RunDirectory run = RunDirectory::open_for_reading(run_path);
  ModelSource source;
  source.kind = kRunSource;
  source.job = job_from_json_text(read_file(run.job_path(), file_kind::job), run.job_path());
  resolve_defaults(source.job);
  source.model = source.job.model;
  const std::optional<std::string> checkpoint =
      is_checkpoint ? std::optional<std::string>(path) : best_checkpoint(run.path());
  if (!checkpoint)
    user_error("{}: no checkpoint in it yet: train on with `brisk train ... --output {} --resume`", path, path);
  source.place = *checkpoint;
  const FileChecksums files = read_checkpoint_state(*checkpoint).run_files;
  const bool texts = has_texts(traits_of_task(source.job.task), source.model.type);
  source.tokenizer = [run = run.path(), tokenizer_path = run.tokenizer_path(), files,
                      texts]() -> std::unique_ptr<Tokenizer> {
    if (!texts) return nullptr;
    check_run_file(run, "tokenizer.json", files, "copy it back from where it was saved, or name one with --tokenizer");
    return load_tokenizer(tokenizer_path);
  };
  if (const std::string target = run.path() + kTargetTokenizerFile; files.contains("target_tokenizer.json")) {
    source.target_tokenizer = [run = run.path(), target, files] {
      check_run_file(run, "target_tokenizer.json", files, "copy it back from where it was saved");
      return load_tokenizer(target);
    };
  }
  source.check = [place = *checkpoint](const ParameterStore& store) { check_whole_model(place, store); };
  source.load_into = [place = *checkpoint, scale = adapter_scale(source.job.training)](ParameterStore& store,
                                                                                       NonFinite nonfinite) {
    load_whole_model(place, store, scale, nonfinite);
  };
  check_run_file(run.path(), "labels.json", files, "copy it back from where it was saved");
  if (traits_of_task(source.job.task).has_labels && !has_no_head(source.job)) {
    source.labels = read_labels(run.path(), source.model.num_labels).names();
  }
  const Architecture& architecture = architecture_of(source.model);
  source.config = architecture.inference_config(source.job, [&](std::string_view parameter) {
    return SafetensorsFile(*checkpoint + "/model.safetensors").find(std::string(parameter)) != nullptr;
  });
  if (architecture.starts_from_part()) {
    source.start = [place = *checkpoint](ParameterStore& store, const std::vector<int64_t>& layers,
                                         NonFinite nonfinite) {
      return load_encoder(place, store, layers, nonfinite).lines();
    };
  }
  return source;
}

// The length at which the texts of a Hugging Face folder's model are cut: tokenizer_config.json has that of the training,
// as `brisk export` writes it, or a number that means no end.
std::optional<int64_t> told_length(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  if (!is_directory(folder) || !file_exists(path)) return std::nullopt;
  const nlohmann::ordered_json config = parse_json(read_file(path, file_kind::config), path, "fetch the file again");
  const auto found = config.is_object() ? config.find("model_max_length") : config.end();
  if (found == config.end() || !found->is_number_integer()) return std::nullopt;
  const auto length = found->get<double>();
  return length >= 1 && length <= 1e9 ? std::optional(static_cast<int64_t>(length)) : std::nullopt;
}

// The keys of `model` into the job, unless it says something else.
void take(Job& job, const ModelOptions& model) {
  const Architecture& architecture = architecture_of(model);
  if (!trains_type(traits_of_task(job.task), model.type)) {
    user_error("{}: a {}, which task {} does not train: use task {}, or name a {}", job.model.from, model.type,
               job.task, alternatives(tasks_for_type(model.type)), alternatives(types_for_task(job.task)));
  }
  Job source = job;
  source.model = model;
  const std::vector<Option> asked = declare_job_options(job), there = declare_job_options(source);
  std::string conflicts;
  for (size_t i = 0; i < asked.size(); ++i) {
    const Option& option = asked[i];
    if (option.section() != "model") continue;
    const bool given = job.given.contains(option.path);
    const auto is_less = [&] { return *std::get<int64_t*>(option.field) < *std::get<int64_t*>(there[i].field); };
    if (option.source_rule == WithSource::leaves || (given && option.source_rule == WithSource::suggests) ||
        (given && option.source_rule == WithSource::limits && architecture.starts_from_part() && is_less())) {
      there[i].take(option);
    } else if (given && option.value_text() != there[i].value_text()) {
      conflicts += fmt::format("{}{} is {} there and {} in the job", conflicts.empty() ? "" : "; ", option.path,
                               there[i].value_text(), option.value_text());
    }
  }
  if (!conflicts.empty()) {
    user_error("{}: model.from decides the architecture: {}; leave out what comes from it", job.model.from, conflicts);
  }
  job.model = source.model;
  if (!job.given.contains("training.max_length")) {
    job.training.max_length = std::min(job.training.max_length, job.model.context);
  }
}

// Before anybody makes room for a model as large as its configuration says.
ModelSource checked(ModelSource source) {
  source.tokenizer = [own = std::move(source.tokenizer), model = source.model, task = source.job.task,
                      place = source.place] {
    std::unique_ptr<Tokenizer> tokenizer = own();
    if (tokenizer) check_tokenizer(*tokenizer, model, task, place);
    return tokenizer;
  };
  if (source.target_tokenizer) {
    source.target_tokenizer = [own = std::move(source.target_tokenizer), model = source.model, task = source.job.task,
                               place = source.place]() mutable {
      std::unique_ptr<Tokenizer> tokenizer = own();
      model.source_vocab_size = 0;  // that of the texts
      check_tokenizer(*tokenizer, model, task, place);
      return tokenizer;
    };
  }
  if (!source.check) return source;
  ParameterStore parameters;
  make_model(source.config, parameters);
  source.check(parameters);
  return source;
}

}  // namespace

bool has_no_head(const Job& job) { return traits_of_task(job.task).has_labels && job.model.num_labels == 0; }

void check_tokenizer(const Tokenizer& tokenizer, const ModelOptions& model, const std::string& task,
                     const std::string& place) {
  const TaskTraits& traits = traits_of_task(task);
  std::string problem;
  // Ids beyond the embedding would be read from beyond it. A model may have rows to spare: vocabularies are padded.
  const int64_t vocabulary = model.source_vocab_size > 0 ? model.source_vocab_size : model.vocab_size;
  if (tokenizer.vocab_size() > vocabulary || 2 * tokenizer.vocab_size() < vocabulary) {
    problem = fmt::format("the model has a vocabulary of {}, but the tokenizer has {} entries", vocabulary,
                          tokenizer.vocab_size());
  } else if ((traits.has_labels || traits.masks_tokens) && tokenizer.single_template().prefix.empty()) {
    problem =
        "the tokenizer puts no special token ([CLS], <s>) before a text, where the model would look for its answer";
  } else if (traits.masks_tokens && !tokenizer.mask_token()) {
    problem = "the tokenizer has no mask token ([MASK], <mask>), which the model was trained with";
  }
  if (!problem.empty()) user_error("{}: {}: name the one it was trained with (--tokenizer)", place, problem);
}

ModelSource foreign_source(const std::string& kind, const std::string& path, const ModelOptions& model) {
  ModelSource source;
  source.kind = kind;
  source.place = path;
  source.model = source.job.model = model;
  source.job.training.max_length = std::min(model.context, told_length(path).value_or(kUsualLength));
  fs::path place = fs::path(path).lexically_normal();
  if (place.filename().empty()) place = place.parent_path();  // "bert/"
  source.job.name = (is_directory(path) ? place.filename() : place.stem()).string();
  return source;
}

ModelSource open_model_source(const std::string& path) {
  if (!file_exists(path))
    user_error(
        "{0}: no such run directory, checkpoint, model folder or model file; brisk downloads nothing: get the folder where "
        "there is a network (hf download NAME --local-dir {0}; docs/models.md has the names) and copy it here, or give "
        "another path (--set model.from=DIR)",
        path);
  const fs::path folder = fs::absolute(path).parent_path();
  if (!is_directory(path) && path.ends_with(".safetensors") && file_exists((folder / "state.json").string()))
    user_error("{}: a part of a checkpoint; name its folder, {}", path, folder.string());
  for (const Architecture* architecture : architectures()) {
    if (std::optional<ModelSource> source = architecture->open_foreign(path)) return checked(*std::move(source));
  }
  if (!file_exists(path + "/job.json") && !file_exists(path + "/state.json")) {
    user_error("{}: not a run directory: it has no job.json; and no Hugging Face model: it has no config.json", path);
  }
  return checked(from_run(path));
}

std::vector<std::string> take_model_from_source(Job& job, bool resume) {
  if (job.model.from.empty()) return {};
  const std::string saved = (job.output.empty() ? "runs/" + job.name : job.output) + "/job.json";
  if (resume && file_exists(saved)) {
    const Job before = job_from_json_text(read_file(saved, file_kind::job), saved);
    if (before.model.from == job.model.from) take(job, before.model);
    return {};  // otherwise the run was started from something else, which resuming complains of
  }
  const ModelSource source = open_model_source(job.model.from);
  take(job, source.model);
  std::vector<std::string> lines = {fmt::format("model.from: {} ({}): {}, {} wide, vocabulary {}", source.place,
                                                source.kind, plural(source.model.num_layers, "layer"),
                                                job.model.d_model, job.model.vocab_size)};
  if (job.model.num_layers < source.model.num_layers) {
    lines.push_back(fmt::format(
        "student: its {} initialised from {} {} of the source's {}",
        job.model.num_layers == 1 ? "layer is" : fmt::format("{} layers are", job.model.num_layers),
        plural_noun(job.model.num_layers, "layer"),
        fmt::join(spread_layers(source.model.num_layers, job.model.num_layers), ", "), source.model.num_layers));
  }
  return lines;
}

std::vector<int64_t> spread_layers(int64_t layers_there, int64_t layers) {
  std::vector<int64_t> chosen;
  for (int64_t l = 0; l < layers; ++l) chosen.push_back(l * layers_there / layers);
  return chosen;
}

}  // namespace brisk
