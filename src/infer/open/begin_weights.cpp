#include "infer/open/begin_weights.h"

#include "checkpoint/warm_start.h"
#include "infer/architecture/architecture.h"
#include "infer/open/model_parts.h"
#include "infer/open/model_source.h"

namespace brisk {

std::vector<std::string> begin_weights(const Job& job, ParameterStore& store) {
  const auto seed = static_cast<uint64_t>(job.training.seed);
  if (job.model.from.empty()) {
    store.initialise(seed);
    return load_model_parts(architecture_of(job.model).parts(job.model), store, nonfinite_of(job));
  }
  initialise_what_may_be_missing(store, seed);
  const ModelSource source = open_model_source(job.model.from);
  if (source.start) {
    const bool student = job.model.num_layers < source.model.num_layers;
    const std::vector<int64_t> layers =
        student ? spread_layers(source.model.num_layers, job.model.num_layers) : std::vector<int64_t>();
    return source.start(store, layers, nonfinite_of(job));
  }
  source.load_into(store, nonfinite_of(job));
  return {};
}

}  // namespace brisk
