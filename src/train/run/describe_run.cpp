#include "train/run/describe_run.h"

#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "infer/device_choice.h"
#include "train/record/run_text.h"

namespace brisk {

void describe_run(const TrainingSetup& setup) {
  const Task::Description data =
      setup.task->describe_data(setup.job, setup.data, measure_packing(*setup.data.train, setup.loader_options));
  say("{}", data.text);
  write_file_atomically(setup.directory.statistics_path(), data.json);
  say("\n{}", model_table(setup.costs));
  if (setup.memory.trained_parameters < setup.memory.parameters) {
    say("trained: {} of {} parameters, the rest is frozen",
        format_count(static_cast<double>(setup.memory.trained_parameters)),
        format_count(static_cast<double>(setup.memory.parameters)));
  }
  say("{}", memory_table(setup.memory));
  const TrainingOptions& training = setup.job.training;
  say("model: {}", setup.task->describe_model(setup.job));
  say("schedule: {}, {} of {} warm-up{}; weight decay {:g}, gradient norm {}, seed {}", training.lr_scheduler,
      setup.schedule.warmup_steps, plural(setup.total_steps, "step"),
      training.lr_scheduler == "constant"
          ? ""
          : fmt::format(", to {:g}", setup.schedule.final_ratio * training.learning_rate),
      training.weight_decay,
      training.max_grad_norm > 0 ? fmt::format("at most {:g}", training.max_grad_norm) : "not clipped", training.seed);
  const bool on_gpu = setup.engine->parameters().device().is_cuda();
  say("{}{} of {}, {} an epoch; {}, {}, {}, peak {:.0f} GFLOP/s in {}", plural(setup.total_steps, "step"),
      setup.time_box ? " (a guess until the first ones are measured)" : "",
      plural(setup.loader_options.sequences_per_step, "sequence"), setup.steps_per_epoch,
      plural(thread_pool().size(), "thread"), arithmetic_unit(setup.engine->parameters().device()),
      precision_name(setup.choices.compute_type, setup.choices.products), setup.peak->gflops(),
      on_gpu ? "products" : "registers");
  if (!setup.time_box && training.warmup_steps > setup.total_steps) {
    warn("training.warmup_steps is {}, and the run has {}: all of it is warm-up", training.warmup_steps,
         plural(setup.total_steps, "step"));
  }
  if (setup.loader_options.sequences_per_step > setup.data.sequences_per_epoch) {
    warn("a step of {} is more than the data has ({}): an epoch is one step",
         plural(setup.loader_options.sequences_per_step, "sequence"), setup.data.sequences_per_epoch);
  }
}

}  // namespace brisk
