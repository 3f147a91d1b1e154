// MU (models/mu.h): its width, heads and the like are its own; a job decides the layers, the vocabulary and the context.
#include <fmt/format.h>

#include "infer/architecture/architecture.h"
#include "models/mu.h"

namespace brisk {

namespace {

class MuArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override {
    const ModelOptions& model = job.model;
    return MuConfig{.vocab_size = model.vocab_size,
                    .num_layers = model.num_layers,
                    .max_length = model.context,
                    .norm_epsilon = model.norm_epsilon,
                    .dropout = model.dropout,
                    .reference = model.reference};
  }
  ModelConfig inference_config(const Job& job,
                               const std::function<bool(std::string_view)>& /*is_saved*/) const override {
    return training_config(job);
  }
  std::string describe(const Job& job) const override {
    return fmt::format("mu, sixteen blocks of 2x2, dropout {:g}{}", job.model.dropout,
                       job.model.reference
                           ? "; the reference: it sees the tokens that it predicts, so its perplexity is "
                             "not a language model's"
                           : "");
  }
};

}  // namespace

const Architecture& mu_architecture() {
  static const MuArchitecture architecture;
  return architecture;
}

}  // namespace brisk
