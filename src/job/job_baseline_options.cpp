// The options by which a job knows the one that it was made of: figures to compare its run with.
#include "job/job_options.h"

namespace brisk {

void declare_baseline_options(Job& job, std::vector<Option>& all) {
  BaselineOptions& baseline = job.baseline;
  const auto text = [&](const char* name, std::string& field, const char* help) {
    all.emplace_back(std::string("baseline.") + name, field, help, OnResume::may_change)
        .automatic("nothing is compared")
        .everywhere()
        .same_in_smoke_test();
  };
  const auto number = [&](const char* name, double& field, const char* help) {
    all.emplace_back(std::string("baseline.") + name, field, help, OnResume::may_change)
        .at_least(0)
        .automatic(0, "not known")
        .everywhere()
        .same_in_smoke_test();
  };
  text("job", baseline.job, "the job before, as it was measured: its file, or how the ladder began");
  number("tokens_per_second", baseline.tokens_per_second, "tokens/s of that job");
  number("epoch_seconds", baseline.epoch_seconds,
         "seconds that an epoch of it takes, evaluations and checkpoints included");
  text("quality_metric", baseline.metric, "metric of its best evaluation");
  number("quality", baseline.value, "value of that metric");
  number("quality_low", baseline.low, "lower end of its 95 % interval");
  number("quality_high", baseline.high, "upper end of it");
}

}  // namespace brisk
