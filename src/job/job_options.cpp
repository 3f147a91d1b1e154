#include "job/job_options.h"

#include "job/job_conditions.h"

namespace brisk {

namespace {

void declare_top_options(Job& job, std::vector<Option>& all) {
  all.emplace_back("name", job.name, "name of the run", OnResume::may_change)
      .automatic("the job file's name without .json")
      .everywhere()
      .same_in_smoke_test();
  std::vector<std::string> tasks;
  for (const TaskTraits& task : all_tasks()) tasks.push_back(task.name);
  all.emplace_back(
         "task", job.task,
         "what the model learns: to continue text (language_model), to sort texts into classes (classify), or "
         "to fill in masked words, before it is fine-tuned (mlm)",
         OnResume::fixed)
      .one_of(tasks)
      .same_as("lm", "language_model")
      .same_as("causal_lm", "language_model")
      .same_as("classification", "classify")
      .same_as("text_classification", "classify")
      .same_as("sequence_classification", "classify")
      .same_as("masked_lm", "mlm")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("comment", job.comment, "free text for people; brisk does not read it", OnResume::may_change)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("output", job.output, "folder of the run: checkpoints, tokenizer, metrics; or --output",
                   OnResume::may_change)
      .automatic("runs/ and the name")
      .also({"output_dir", "run_dir", "out_dir", "training.output_dir"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "device", job.device,
         "device to train on: `cpu`, an NVIDIA GPU (`cuda` or `gpu`; `cuda:1` for the second one), or `auto`: "
         "a GPU if there is one; or --device",
         OnResume::may_change)
      .also({"training.device"})
      .everywhere()
      .same_in_smoke_test();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> job_sections() {
  return {{"", "A training job of brisk."},
          {"model", "The network."},
          {"training", "How it is trained, evaluated, saved and computed."},
          {"data", "What it learns from."}};
}

std::vector<Option> declare_job_options(Job& job) {
  std::vector<Option> all;
  declare_top_options(job, all);
  declare_model_options(job, all);
  declare_training_options(job, all);
  declare_fine_tuning_options(job, all);
  declare_run_options(job, all);
  declare_data_options(job, all);
  return all;
}

Job with_found(Job job, const FoundValues& found) {
  take_found(declare_job_options(job), found);
  return job;
}

Job with_recalled(Job job, Job saved) {
  recall_found(declare_job_options(job), declare_job_options(saved));
  return job;
}

}  // namespace brisk
