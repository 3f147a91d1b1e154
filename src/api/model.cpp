#include <brisk/model.h>

#include <algorithm>
#include <utility>

#include "api/loaded_model.h"
#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "infer/precision.h"
#include "train/task/task.h"

namespace brisk {

LoadedModel::LoadedModel(Runtime& runtime, const std::string& path, const LoadOptions& options) {
  const RuntimeScope scope(runtime);
  auto model = open_trained_model(path, options.tokenizer, options.as_trained, options.device,
                                  options.allow_nonfinite ? NonFinite::allow : NonFinite::refuse);
  content_.reset(
      new Content{.runtime = runtime, .model = std::move(model), .generator = nullptr, .translator = nullptr});
}

LoadedModel::~LoadedModel() {
  if (!content_) return;
  const Content::Scope scope(*content_);  // memory of a device goes back to it
  content_.reset();
}

LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;

LoadedModel& LoadedModel::operator=(LoadedModel&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}

const std::string& LoadedModel::source() const { return content_->model->source; }
const std::string& LoadedModel::task() const { return content_->model->job.task; }
const std::string& LoadedModel::best_by() const { return content_->model->job.training.best_by; }
const std::vector<std::string>& LoadedModel::labels() const { return content_->model->labels.names(); }
bool LoadedModel::classifies_pairs() const { return !content_->model->job.data.pair_field.empty(); }
int64_t LoadedModel::parameters() const { return content_->model->store.count(); }
const Tokenizer& LoadedModel::tokenizer() const {
  if (!content_->model->tokenizer) user_error("{}: a classifier of images, which has no tokenizer", source());
  return *content_->model->tokenizer;
}

std::string LoadedModel::precision() const {
  return precision_name(content_->model->store.compute_type(), GemmFormat::own);
}

int64_t LoadedModel::Content::length(int64_t asked) const {
  const int64_t usual = model->job.training.max_length, positions = std::max(usual, model->job.model.context);
  if (asked > positions)
    user_error("{} {}: the model has {} positions; use at most that many", option_name("max_length"), asked, positions);
  return asked > 0 ? asked : usual;
}

Generated LoadedModel::generate(std::string_view prompt, const GenerateOptions& options,
                                const std::function<void(std::string_view)>& on_piece) {
  const Content::Scope scope(*content_);
  const TrainedModel& model = *content_->model;
  if (!content_->generator) content_->generator = make_task(model.job)->open_generator(model);
  return content_->generator->generate(prompt, options, in_callers_mode(on_piece));
}

std::string LoadedModel::write(const std::string& path, ModelFormat format, WeightFormat weights) {
  const Content::Scope scope(*content_);
  const TrainedModel& model = *content_->model;
  const Architecture& architecture = architecture_of(model.job.model);
  if (format == ModelFormat::gguf) {
    architecture.write_gguf(model, path,
                            weights == WeightFormat::fp32   ? GgufType::f32
                            : weights == WeightFormat::fp16 ? GgufType::f16
                                                            : GgufType::bf16);
    return "";
  }
  return architecture.write_huggingface(model, path,
                                        weights == WeightFormat::fp32   ? SafetensorsType::f32
                                        : weights == WeightFormat::fp16 ? SafetensorsType::f16
                                                                        : SafetensorsType::bf16);
}

}  // namespace brisk
