#include "infer/open/trained_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/isa.h"
#include "base/terminal/terminal.h"
#include "checkpoint/checkpoint.h"
#include "infer/device_choice.h"
#include "infer/open/label_file.h"
#include "infer/open/model_source.h"
#include "infer/tuned_settings.h"
#include "job/job_conditions.h"
#include "ops/optimizer/parameters.h"

namespace brisk {

namespace {

// A tokenizer that was not trained with the model gives ids that mean other words to it.
void compare_with_own(const ModelSource& source, const Tokenizer& given, const std::string& path) {
  std::unique_ptr<Tokenizer> own;
  try {
    own = source.tokenizer();
  } catch (const UserError&) {  // it has none: that is what --tokenizer is for
    return;
  }
  if (!own || own->fingerprint() == given.fingerprint()) return;
  warn("{}: not the tokenizer that {} has of its own ({} entries, there {}): what the model says may mean nothing",
       path, source.place, given.vocab_size(), own->vocab_size());
}

// Where a checkpoint of a run is damaged, another one is named.
[[noreturn]] void name_another(const std::string& run, const UserError& error) {
  const std::string problem = error.what();
  if (is_directory(run) && !file_exists(run + "/state.json")) {
    std::string whole;
    for (const CheckpointPath& place : list_checkpoints(run)) {
      if (problem.find(place.path) == std::string::npos) whole = place.path;
    }
    const bool of_a_checkpoint = problem.find("/checkpoints/") != std::string::npos;
    if (of_a_checkpoint && !whole.empty())
      user_error("{}; {} is another checkpoint of the run: name it", problem, whole);
  }
  throw;
}

// The format of the run's products; of a model that was not trained here, fp32.
DType trained_type(const ModelSource& source, const Device& device) {
  if (!device.is_cuda() && !has_bf16_instructions(active_isa())) return DType::f32;
  if (source.kind != kRunSource) return DType::f32;
  const std::string tuned = read_checkpoint_state(source.place).tuned_settings_json;
  if (tuned == CheckpointState().tuned_settings_json) return DType::f32;  // imported
  const DType type = tuned_settings_from_json(tuned, source.place).compute_type;
  return type == DType::f16 && !device.is_cuda() ? DType::f32 : type;
}

}  // namespace

const CausalModel& TrainedModel::causal() const {
  if (model->causal() == nullptr) {
    const bool names_classes = traits_of_task(job.task).has_labels && !has_no_head(job);
    user_error(
        "{}: model.type {} (task {}) does not continue texts; {}", source, job.model.type, job.task,
        reads_images(job.model.type)      ? fmt::format("`brisk predict {} --images FOLDER` answers about images", path)
        : model->conditional() != nullptr ? "`brisk translate` translates them"
        : names_classes                   ? "`brisk predict` names the class of a text"
                        : fmt::format("a classifier can be trained from it: \"model\": {{\"from\": \"{}\"}}", source));
  }
  return *model->causal();
}

const ConditionalModel& TrainedModel::conditional() const {
  if (model->conditional() == nullptr) {
    user_error("{}: a {} (task {}), which does not translate; {}", source, job.model.type, job.task,
               model->causal() != nullptr ? "`brisk generate` continues texts"
                                          : "a translator is trained by a job of task translate");
  }
  return *model->conditional();
}

namespace {

// A classifier's run without its labels would be taken for a model that has none.
void check_labels(const ModelSource& source, const TrainedModel& model) {
  const int64_t classes = model.model->classes(), labels = model.labels.count();
  if (source.kind != kRunSource || !traits_of_task(model.job.task).has_labels || has_no_head(model.job)) return;
  if (classes == labels) return;
  const std::string run = std::filesystem::path(source.place).parent_path().parent_path().string();
  user_error("{}: {}, and the model has {} classes; copy it back from where the run was saved", run + kLabelFile,
             labels == 0 ? "there is no such file" : fmt::format("it names {} classes", labels), classes);
}

std::unique_ptr<TrainedModel> open_whole(const std::string& path, const std::string& tokenizer_path, bool as_trained,
                                         const std::string& device, NonFinite nonfinite) {
  Device& place = *choose_device(device, "--device").device;
  const ModelSource source = open_model_source(path);
  auto model = std::make_unique<TrainedModel>();
  model->job = source.job;
  if (!tokenizer_path.empty() && !has_texts(traits_of_task(source.job.task), source.model.type))
    user_error("{}: it reads images and names their classes: it has no tokenizer; remove {}", path, tokenizer_path);
  model->tokenizer = tokenizer_path.empty() ? source.tokenizer() : load_tokenizer(tokenizer_path);
  if (!tokenizer_path.empty()) {
    check_tokenizer(*model->tokenizer, source.model, source.job.task, path);
    compare_with_own(source, *model->tokenizer, tokenizer_path);
  }
  if (source.target_tokenizer) model->target_tokenizer = source.target_tokenizer();
  model->labels = LabelSet::in_order(source.labels);
  model->config = source.config;
  model->model = make_model(model->config, model->store);
  check_labels(source, *model);
  model->store.allocate(place, {}, as_trained ? trained_type(source, place) : DType::f32,
                        ParameterStore::Purpose::inference);
  source.load_into(model->store, nonfinite);
  refresh_compute_copies(model->store);
  model->source = source.place;
  model->path = path;
  model->kind = source.kind;
  return model;
}

}  // namespace

std::unique_ptr<TrainedModel> open_trained_model(const std::string& path, const std::string& tokenizer_path,
                                                 bool as_trained, const std::string& device, NonFinite nonfinite) {
  try {
    return open_whole(path, tokenizer_path, as_trained, device, nonfinite);
  } catch (const UserError& error) {
    name_another(path, error);
  }
}

}  // namespace brisk
