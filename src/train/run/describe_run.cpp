#include "train/run/describe_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "infer/device_choice.h"
#include "infer/optimizer_options.h"
#include "train/record/run_text.h"

namespace brisk {

namespace {

std::string every_text(int64_t steps) {
  return steps > 1 ? fmt::format("every {} steps", steps) : steps == 1 ? "after each step" : "after each epoch";
}

// "evaluated 9 times; a checkpoint about every 5 minutes and after the best evaluation so far"
std::string cadence_text(const TrainingSetup& setup) {
  const TrainingOptions& training = setup.job.training;
  std::string text;
  if (setup.data.validation->empty()) {
    text = "no evaluations: there is no validation data";
  } else if (training.eval_steps >= 0) {
    text = fmt::format("evaluated {}", every_text(training.eval_steps));
  } else if (setup.time_box) {
    text = "evaluated up to 10 times, in a tenth of the time";
  } else {
    const int64_t count = setup.evaluations.count();
    text = fmt::format("evaluated {}", count == 1 ? "once, at the end" : fmt::format("{} times", count));
  }
  std::string saved = training.save_steps >= 0 || training.save_minutes <= 0
                          ? every_text(std::max<int64_t>(0, training.save_steps))
                          : "";
  if (training.save_minutes > 0) {
    saved += fmt::format("{}about every {:g} minutes", saved.empty() ? "" : " and ", training.save_minutes);
  }
  return fmt::format("{}; a checkpoint {}", text, saved);
}

// "Muon for the layers' matrices at a rate of 0.01, AdamW for the rest at 0.004"
std::string optimizer_text(const TrainingSetup& setup) {
  const TrainingOptions& training = setup.job.training;
  if (!muon_options(training) || training.lora_rank > 0)
    return fmt::format("AdamW, learning rate {:g}, betas {:g} and {:g}", training.learning_rate, training.beta1,
                       training.beta2);
  return fmt::format(
      "Muon for the matrices of the layers, learning rate {:g}, momentum {:g}; AdamW for the rest, learning rate {:g}, "
      "betas {:g} and {:g}",
      training.muon_learning_rate, training.muon_momentum, training.learning_rate, training.beta1, training.beta2);
}

}  // namespace

void describe_run(const TrainingSetup& setup) {
  const Task::Description data =
      setup.task->describe_data(setup.job, setup.data, measure_packing(*setup.data.train, setup.loader_options));
  say("{}", data.text);
  if (!setup.request.dry_run) write_file_atomically(setup.directory.statistics_path(), data.json);
  const TrainingOptions& training = setup.job.training;
  say("model        {}; {}", model_line(setup.costs), setup.task->describe_model(setup.job));
  if (setup.memory.trained_parameters < setup.memory.parameters) {
    say("trained      {} of {} parameters, the rest is frozen",
        format_count(static_cast<double>(setup.memory.trained_parameters)),
        format_count(static_cast<double>(setup.memory.parameters)));
  }
  say("memory       {}", memory_line(setup.memory));
  if (setup.memory.copy_bytes == 0) {
    say("             training waits while a checkpoint is written: there is no room for a copy of its {}",
        format_bytes(static_cast<double>(setup.memory.saved_bytes)));
  }
  say("optimizer    {}", optimizer_text(setup));
  say("schedule     {}, {} of {} of warm-up{}; weight decay {:g}, gradient clipping {}, seed {}", training.lr_scheduler,
      setup.schedule.warmup_steps, plural(setup.total_steps, "step"),
      training.lr_scheduler == "constant"
          ? ""
          : fmt::format(", down to {:g}", setup.schedule.final_ratio * training.learning_rate),
      training.weight_decay, training.max_grad_norm > 0 ? fmt::format("at {:g}", training.max_grad_norm) : "off",
      training.seed);
  const bool on_gpu = setup.engine->parameters().device().is_cuda();
  say("run          {}{} of {}, {} per epoch; {}, {}, {}, peak {:.0f} GFLOP/s (measured in {})",
      plural(setup.total_steps, "step"), setup.time_box ? " (estimated; updated after the first steps)" : "",
      plural(setup.loader_options.sequences_per_step, "sequence"), setup.steps_per_epoch,
      plural(thread_pool().size(), "thread"), arithmetic_unit(setup.engine->parameters().device()),
      precision_name(setup.tuned.compute_type, setup.tuned.products), setup.peak->gflops(),
      on_gpu ? "matrix products" : "registers");
  say("             {}", cadence_text(setup));
  if (!setup.time_box && training.warmup_steps > setup.total_steps) {
    warn("training.warmup_steps is {}, but the run has {}: the learning rate never reaches its peak",
         training.warmup_steps, plural(setup.total_steps, "step"));
  }
  if (setup.loader_options.sequences_per_step > setup.data.sequences_per_epoch) {
    warn("an optimizer step takes {}, but the data has only {}: each epoch is a single step",
         plural(setup.loader_options.sequences_per_step, "sequence"), setup.data.sequences_per_epoch);
  }
}

}  // namespace brisk
