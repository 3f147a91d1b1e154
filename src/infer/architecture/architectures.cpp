#include <algorithm>

#include "base/error.h"
#include "infer/architecture/architecture.h"

namespace brisk {

const Architecture& encoder_architecture();
const Architecture& decoder_architecture();

std::span<const Architecture* const> architectures() {
  static const Architecture* const table[] = {
      &encoder_architecture(),
      &decoder_architecture(),  // last: its readers say what is wrong with a file that nobody knows
  };
  return table;
}

const Architecture& architecture_of(const ModelOptions& model) {
  const auto has_type = [&](const Architecture* architecture) {
    const std::vector<std::string> types = architecture->types();
    return std::find(types.begin(), types.end(), model.type) != types.end();
  };
  const std::span<const Architecture* const> table = architectures();
  const auto found = std::find_if(table.begin(), table.end(), has_type);
  BRISK_CHECK(found != table.end(), "no architecture has the model.type {}", model.type);
  return **found;
}

bool Architecture::trains_with(std::string_view task) const {
  const std::vector<std::string> known = tasks();
  return std::find(known.begin(), known.end(), task) != known.end();
}

void Architecture::check_huggingface(const ModelOptions& model) const {
  user_error("brisk does not write a {} for Hugging Face: transformers has no such model", model.type);
}

std::string Architecture::write_huggingface(const TrainedModel& model, const std::string& /*folder*/,
                                            SafetensorsType /*type*/) const {
  check_huggingface(model.job.model);
  return "";
}

void Architecture::write_gguf(const TrainedModel& model, const std::string& /*path*/, GgufType /*type*/) const {
  user_error("--format gguf: {} is a {}, and brisk writes GGUF files for decoders only; use --format huggingface",
             model.path, model.job.model.type);
}

}  // namespace brisk
