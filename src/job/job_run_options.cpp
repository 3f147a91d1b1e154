// The options of a run's course (evaluations, checkpoints, logs, samples) and of the threads that compute it.
#include <algorithm>

#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

constexpr int64_t kNever = 1'000'000'000'000'000;  // steps, until the run ends
constexpr const char* kNoFraction = "a fraction of the run is not understood; give a number of optimizer steps";

void declare_course(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back(
         "training.eval_steps", training.eval_steps,
         "optimizer steps between evaluations on the validation data; 0 or epoch: after each epoch; end: at the "
         "end of the run only",
         OnResume::may_change)
      .at_least(0)
      .or_word("epoch", 0)
      .or_word("end", kNever)
      .instead_of_fraction(kNoFraction)
      .automatic(-1,
                 "about 10 in a run, as far as they take at most a tenth of its time; with early_stopping_patience "
                 "after each epoch")
      .in("optimizer steps")
      .used_with(with_evaluations(job))
      .also({"eval_interval", "evaluation_steps", "eval_every"})
      .smoke_test_value(kSmokeTestSteps / 2);
  all.emplace_back("training.logging_steps", training.logging_steps,
                   "optimizer steps between lines of metrics.jsonl, and of the log where it is not a terminal",
                   OnResume::may_change)
      .at_least(1)
      .automatic(0, "10, in the log a line now and then")
      .instead_of_fraction(kNoFraction)
      .in("optimizer steps")
      .also({"log_interval", "log_every", "log_steps"})
      .smoke_test_value(1)
      .everywhere();
  all.emplace_back("training.save_steps", training.save_steps,
                   "optimizer steps between checkpoints; 0 or epoch: after each epoch; end: at the end of the run only",
                   OnResume::may_change)
      .at_least(0)
      .or_word("epoch", 0)
      .or_word("end", kNever)
      .instead_of_fraction(kNoFraction)
      .automatic(-1, "every save_minutes, and after epochs that are not much shorter")
      .in("optimizer steps")
      .also({"save_interval", "save_every", "checkpoint_steps"})
      .smoke_test_value(kSmokeTestSteps / 6)
      .everywhere();
  all.emplace_back("training.save_minutes", training.save_minutes,
                   "save another checkpoint about whenever the last one is this old; 0: never", OnResume::may_change)
      .at_least(0)
      .at_most(1e6)
      .in("minutes")
      .smoke_test_value(0.0)
      .everywhere();
  all.emplace_back("training.save_total_limit", training.save_total_limit,
                   "number of latest checkpoints to keep, in addition to the best; 0: all", OnResume::may_change)
      .at_least(0)
      .in("checkpoints")
      .also({"keep_checkpoints", "max_checkpoints"})
      .smoke_test_value(2)
      .everywhere();
  all.emplace_back("training.load_best_model_at_end", training.load_best_model_at_end,
                   "end the run with the weights that did best on the validation data, not with the last ones",
                   OnResume::may_change)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "training.best_by", training.best_by,
         "validation metric that decides which weights are best, and early stopping: any that the task evaluates, "
         "such as loss, accuracy, f1 (macro F1, each class counting the same), bleu or chrf; ties are broken by the "
         "lower loss",
         OnResume::fixed)
      .default_with(with_labels(job), "accuracy")
      .also({"metric_for_best_model"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.early_stopping_patience", training.early_stopping_patience,
                   "stop after this many evaluations in a row that are no better than the best (best_by); 0: never",
                   OnResume::may_change)
      .at_least(0)
      .in("evaluations")
      .only_with(with_validation(job))
      .also({"patience"})
      .smoke_test_value(0);
}

void declare_divergence_guard(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  const Condition guarded = {"divergence_guard", [&training] { return training.divergence_guard; }};
  // A classifier that begins to learn has gradients ten times those of its plateau: the guard would take that away.
  all.emplace_back(
         "training.divergence_guard", training.divergence_guard,
         "skip updates whose loss or gradient is not finite or far above recent ones; if this keeps happening, "
         "return to the last good checkpoint at half the learning rate",
         OnResume::fixed)
      .default_with(with_labels(job), false)
      .also({"guard"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.divergence_gradient_ratio", training.divergence_gradient_ratio,
                   "skip an update whose gradient norm is more than this many times the median of the last 64",
                   OnResume::fixed)
      .above(1)
      .used_with(guarded)
      .same_in_smoke_test();
  all.emplace_back("training.divergence_rollbacks", training.divergence_rollbacks,
                   "how many times to return to a good checkpoint before giving up; 0: stop at the first divergence",
                   OnResume::fixed)
      .at_least(0)
      .at_most(100)
      .used_with(guarded)
      .same_in_smoke_test();
}

void declare_records(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  const Condition decoder = with_decoder(job, "it does not continue texts");
  const Condition translations = with_encoder_decoder_task(job);
  all.emplace_back(
         "training.eval_translations", training.eval_translations,
         "pairs of the validation data, the first so many, that are translated at each evaluation, for BLEU and "
         "chrF; 0: none",
         OnResume::fixed)
      .at_least(0)
      .in("pairs")
      .only_with(translations)
      .used_with(with_validation(job))
      .smoke_test_rule([&job] {
        if (traits_of_task(job.task).trains_encoder_decoder)
          job.training.eval_translations = std::min<int64_t>(job.training.eval_translations, 8);
      });
  all.emplace_back("training.eval_beam", training.eval_beam,
                   "beams of these translations; 1 always takes the likeliest token", OnResume::fixed)
      .at_least(1)
      .at_most(64)
      .only_with(translations)
      .used_with(with_validation(job))
      .smoke_test_at_most(2);
  all.emplace_back("training.sample_translations", training.sample_translations,
                   "how many of these translations are shown, in the terminal, samples.jsonl and TensorBoard",
                   OnResume::may_change)
      .at_least(0)
      .in("pairs")
      .only_with(translations)
      .used_with(with_validation(job))
      .same_in_smoke_test();
  all.emplace_back("training.sample_prompts", training.sample_prompts,
                   "texts for the model to continue at each evaluation, shown in the terminal, samples.jsonl and "
                   "TensorBoard; or --sample-prompt",
                   OnResume::may_change)
      .only_with(decoder)
      .also({"sample_prompt", "prompts"})
      .same_in_smoke_test();
  all.emplace_back("training.sample_tokens", training.sample_tokens,
                   "length of each sample; without sample_prompts: one sample, from an empty text; or --sample-tokens",
                   OnResume::may_change)
      .at_least(1)
      .at_most(65536)
      .automatic(0, "64 with sample_prompts, otherwise no samples")
      .in("tokens")
      .only_with(decoder)
      .same_in_smoke_test();
  const Condition samples = {"sample_prompts or sample_tokens",
                             [&training] { return training.sample_tokens > 0 || !training.sample_prompts.empty(); }};
  all.emplace_back("training.sample_temperature", training.sample_temperature,
                   "sampling temperature of the samples; 0 always takes the likeliest token", OnResume::may_change)
      .at_least(0)
      .at_most(100)
      .only_with(decoder)
      .used_with(samples)
      .same_in_smoke_test();
  all.emplace_back("training.sample_top_k", training.sample_top_k,
                   "samples are drawn from the k likeliest tokens only; 0: from all", OnResume::may_change)
      .at_least(0)
      .in("tokens")
      .only_with(decoder)
      .used_with(samples)
      .same_in_smoke_test();
  all.emplace_back("training.sample_top_p", training.sample_top_p,
                   "samples are drawn from the fewest likeliest tokens whose probabilities add up to p; 1: from all",
                   OnResume::may_change)
      .above(0)
      .at_most(1)
      .only_with(decoder)
      .used_with(samples)
      .same_in_smoke_test();
  all.emplace_back("training.sample_repetition_penalty", training.sample_repetition_penalty,
                   "values above 1 make tokens that are already in the text less likely: a positive logit is divided "
                   "by it, a negative one multiplied",
                   OnResume::may_change)
      .at_least(0.01)
      .at_most(100)
      .only_with(decoder)
      .used_with(samples)
      .same_in_smoke_test();
  all.emplace_back("training.tensorboard", training.tensorboard,
                   "write event files for TensorBoard into the folder tensorboard/ of the run", OnResume::may_change)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.histogram_steps", training.histogram_steps,
                   "optimizer steps between histograms of parameters and gradients for TensorBoard; 0: none",
                   OnResume::may_change)
      .at_least(0)
      .in("optimizer steps")
      .also({"histogram_interval", "histogram_freq"})
      .same_in_smoke_test()
      .everywhere();
}

void declare_resources(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back(
         "training.num_workers", training.num_workers,
         "threads that prepare batches in the background, decoding their images; 0: the training thread does it",
         OnResume::may_change)
      .at_least(0)
      .at_most(256)
      .in("threads")
      .default_with(with_images(job), 4)
      .also({"dataloader_num_workers", "data.num_workers"})
      .same_in_smoke_test()
      .everywhere();
  all.emplace_back("training.micro_batch_tokens", training.micro_batch_tokens,
                   "size of the micro-batches that a batch is split into; changes memory and speed, not the result",
                   OnResume::fixed)
      .at_least(1)
      .at_most(16777216)
      .automatic(0, "brisk chooses, at most 4096, on a GPU 65536")
      .in("tokens")
      .smoke_test_value(0)
      .everywhere();
  all.emplace_back("training.measure_micro_batch", training.measure_micro_batch,
                   "time a few micro-batch sizes at the start and keep the fastest; changes speed, not the result",
                   OnResume::fixed)
      .smoke_test_value(false)
      .everywhere();
  all.emplace_back("training.threads", training.threads, "number of CPU threads for computation", OnResume::may_change)
      .at_least(1)
      .at_most(4096)
      .automatic(0, "all cores")
      .in("threads")
      .also({"num_threads", "n_threads"})
      .everywhere()
      .smoke_test_value(1);  // ops this small end sooner than two threads of a busy machine synchronise
}

}  // namespace

void declare_run_options(Job& job, std::vector<Option>& all) {
  declare_course(job, all);
  declare_divergence_guard(job, all);
  declare_records(job, all);
  declare_resources(job, all);
}

}  // namespace brisk
