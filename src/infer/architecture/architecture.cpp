#include "infer/architecture/architecture.h"

#include "base/error.h"

namespace brisk {

void Architecture::check_huggingface(const ModelOptions& model) const {
  user_error("brisk does not write a {} for Hugging Face: transformers has no such model", model.type);
}

std::string Architecture::write_huggingface(const TrainedModel& model, const std::string& /*folder*/,
                                            SafetensorsType /*type*/) const {
  check_huggingface(model.job.model);
  return "";
}

void Architecture::write_gguf(const TrainedModel& model, const std::string& /*path*/, GgufType /*type*/) const {
  std::string instead = "; use --format huggingface";
  try {
    check_huggingface(model.job.model);
  } catch (const UserError&) {
    instead = ", and no other format for a " + model.job.model.type;
  }
  user_error("--format gguf: {} is a {}, and brisk writes GGUF files for decoders only{}", model.path,
             model.job.model.type, instead);
}

}  // namespace brisk
