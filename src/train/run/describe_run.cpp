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

// "evaluated 9 times; a checkpoint about every 5 minutes and after an evaluation that is the best so far"
std::string cadence_text(const RunPlan& plan, bool time_boxed) {
  const TrainingOptions& training = plan.job.training;
  std::string text;
  if (plan.data.validation->empty()) {
    text = "no evaluations: there is no validation data";
  } else if (training.eval_steps >= 0) {
    text = fmt::format("evaluated {}", every_text(training.eval_steps));
  } else if (time_boxed) {
    text = "evaluated up to 10 times, in a tenth of the time";
  } else {
    const int64_t count = plan.evaluations.count();
    text = fmt::format("evaluated {}", count == 1 ? "once, at the end" : fmt::format("{} times", count));
  }
  std::string saved = training.save_steps >= 0 || training.save_minutes <= 0
                          ? every_text(std::max<int64_t>(0, training.save_steps))
                          : "";
  if (training.save_minutes > 0) {
    saved += fmt::format("{}about every {:g} minutes", saved.empty() ? "" : " and ", training.save_minutes);
  }
  if (training.load_best_model_at_end && !plan.data.validation->empty())
    saved += " and after an evaluation that is the best so far";
  return fmt::format("{}; a checkpoint {}", text, saved);
}

// "Muon for the layers' matrices at a rate of 0.01, AdamW for the rest at 0.004"
std::string optimizer_text(const TrainingOptions& training) {
  if (!muon_options(training) || training.lora_rank > 0)
    return fmt::format("AdamW, learning rate {:g}, betas {:g} and {:g}", training.learning_rate, training.beta1,
                       training.beta2);
  return fmt::format(
      "Muon for the matrices of the layers, learning rate {:g}, momentum {:g}; AdamW for the rest, learning rate {:g}, "
      "betas {:g} and {:g}",
      training.muon_learning_rate, training.muon_momentum, training.learning_rate, training.beta1, training.beta2);
}

// ", down to 0", or ", down to 0.00027 at the end of the run: the schedule is 4 times as long"
std::string end_of_schedule_text(const RunPlan& plan, const RunState& run) {
  const TrainingOptions& training = plan.job.training;
  if (training.lr_scheduler == "constant") return "";
  if (training.schedule_ratio <= 1)
    return fmt::format(", down to {:g}", plan.schedule.final_ratio * plan.schedule.rate);
  const std::string length = fmt::format("the schedule is {:g} times as long", training.schedule_ratio);
  if (run.time_box) return fmt::format("; {} as the run", length);
  return fmt::format(", down to {:.3g} at the end of the run: {}", plan.schedule.at(run.total_steps), length);
}

}  // namespace

void describe_run(const RunPlan& plan, const RunState& run, const RunResources& resources) {
  const PackingFigures packing = measure_packing(*plan.data.train, plan.loader_options);
  const Task::Description data = plan.task->describe_data(plan.job, plan.data, packing);
  say("{}", data.text);
  if (!plan.request.dry_run) write_file_atomically(plan.directory.statistics_path(), data.json);
  const TrainingOptions& training = plan.job.training;
  say("model        {}; {}", model_line(plan.costs), plan.task->describe_model(plan.job));
  if (plan.memory.trained_parameters < plan.memory.parameters) {
    say("trained      {} of {} parameters, the rest is frozen",
        format_count(static_cast<double>(plan.memory.trained_parameters)),
        format_count(static_cast<double>(plan.memory.parameters)));
  }
  say("memory       {}", memory_line(plan.memory));
  if (plan.memory.copy_bytes == 0) {
    say("             training waits while a checkpoint is written: there is no room for a copy of its {}",
        format_bytes(static_cast<double>(plan.memory.saved_bytes)));
  }
  say("optimizer    {}", optimizer_text(training));
  say("schedule     {}, {} of {} of warm-up{}; weight decay {:g}, gradient clipping {}, seed {}", training.lr_scheduler,
      std::min(plan.schedule.warmup_steps, run.total_steps), plural(run.total_steps, "step"),
      end_of_schedule_text(plan, run), training.weight_decay,
      training.max_grad_norm > 0 ? fmt::format("at {:g}", training.max_grad_norm) : "off", training.seed);
  const bool on_gpu = resources.engine->parameters().device().is_cuda();
  say("run          {}{} of {}, {} per epoch; {}, {}, {}, peak {:.0f} GFLOP/s (measured in {})",
      plural(run.total_steps, "step"), run.time_box ? " (estimated; updated after the first steps)" : "",
      plural(plan.loader_options.sequences_per_step, "sequence"), plan.steps_per_epoch,
      plural(thread_pool().size(), "thread"), arithmetic_unit(resources.engine->parameters().device()),
      precision_name(plan.tuned.compute_type, plan.tuned.products), resources.peak->gflops(),
      on_gpu ? "matrix products" : "registers");
  say("             {}", cadence_text(plan, run.time_box.has_value()));
  if (!run.time_box && training.warmup_steps > run.total_steps) {
    warn("training.warmup_steps is {}, but the run has {}: the learning rate never reaches its peak",
         training.warmup_steps, plural(run.total_steps, "step"));
  }
  if (training.padding != "none") {
    warn("{:.0f} % of the computed rows are padding; \"padding\": \"none\" is the same training, faster",
         100 * packing.padding_share());
  }
  if (plan.loader_options.sequences_per_step > plan.data.sequences_per_epoch) {
    warn("an optimizer step takes {}, but the data has only {}: each epoch is a single step",
         plural(plan.loader_options.sequences_per_step, "sequence"), plan.data.sequences_per_epoch);
  }
}

}  // namespace brisk
