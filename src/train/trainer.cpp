#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/isa.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "base/threads.h"
#include "train/expectation.h"
#include "train/interrupt.h"
#include "train/rollback.h"
#include "train/run_watch.h"
#include "train/setup.h"
#include "train/tables.h"

namespace brisk {

namespace {

class Trainer {
 public:
  Trainer(Job job, const TrainRequest& request)
      : setup_(std::move(job), request),
        guard_(setup_.job.training, setup_.state.guard),
        watch_(setup_),
        stop_early_(patience_is_over()) {}

  TrainOutcome run() {
    setup_.ledger.enter(Phase::other);
    loop();
    return finish();
  }

 private:
  bool patience_is_over() const {
    const int64_t patience = setup_.job.training.early_stopping_patience;
    return patience > 0 && setup_.state.evaluations_without_improvement >= patience;
  }

  void loop() {
    InterruptGuard guard;
    ProgressBar bar;
    started_ = last_save_ = peak_sampled_ = std::chrono::steady_clock::now();
    epoch_start_ = setup_.ledger.totals();
    while (!is_over() && !stop_early_) {
      if (InterruptGuard::requested()) {
        interrupted_ = true;
        break;
      }
      step_start_ = std::chrono::steady_clock::now();
      StepBatch batch;
      {
        Ledger::Scope scope(setup_.ledger, Phase::data_wait);
        batch = setup_.loader->next();
      }
      const int64_t step = setup_.state.step + 1;
      const double rate = setup_.state.guard.rate_factor *
                          (setup_.time_box ? setup_.time_box->rate(step, elapsed()) : setup_.schedule.at(step));
      const auto before = std::chrono::steady_clock::now();
      const StepResult result = setup_.engine->train_step(batch, step, rate, setup_.ledger, guard_.limits());
      Ledger::Scope scope(setup_.ledger, Phase::logging);
      if (!passes(step, result)) continue;
      count(batch, result, seconds_since(before));
      if (setup_.time_box) follow_the_clock();
      after_step(bar, batch, rate);
    }
    bar.clear();
    if (interrupted_) {
      save();
    }
  }

  bool is_over() const {
    return setup_.time_box ? setup_.time_box->is_over() : setup_.state.step >= setup_.total_steps;
  }

  // Wall time of the run, earlier processes included.
  double elapsed() { return setup_.elapsed_before + setup_.ledger.totals().seconds(); }

  // What the guard says of a step; false where the run went back to an earlier one.
  bool passes(int64_t step, const StepResult& result) {
    if (!guard_.is_on()) {
      if (!result.finite()) give_up(setup_, step, result, "");
      return true;
    }
    const DivergenceGuard::Verdict verdict = guard_.observe(step, result);
    if (verdict.diverged) {
      if (setup_.state.guard.rollbacks >= setup_.job.training.divergence_rollbacks)
        give_up(setup_, step, result, verdict.reason);
      go_back(step, verdict.reason);
      return false;
    }
    constexpr int64_t kToldOneByOne = 5;
    if (verdict.skipped) {
      ++epoch_skipped_;
      const int64_t skipped = setup_.state.guard.skipped;
      if (skipped <= kToldOneByOne) {
        warn("step {}: the update is skipped: {}{}", step, verdict.reason,
             skipped == kToldOneByOne ? "; later ones are only counted" : "");
      }
    }
    return true;
  }

  void go_back(int64_t step, const std::string& reason) {
    setup_.state.elapsed_seconds = elapsed();
    const int64_t place = roll_back(setup_);
    watch_.went_back();
    warn("step {}: training diverged: {}. Back to {}, at {:g} times the learning rate from here on ({} of {} times)",
         step, reason, place > 0 ? fmt::format("the checkpoint of step {}", place) : "the beginning",
         setup_.state.guard.rate_factor, setup_.state.guard.rollbacks, setup_.job.training.divergence_rollbacks);
    std::erase_if(epoch_rows_, [&](const EpochRow& row) { return row.step > place; });
    epoch_tokens_ = epoch_steps_ = epoch_sequences_ = epoch_skipped_ = 0;
    epoch_loss_ = window_seconds_ = 0;
    window_tokens_ = window_steps_ = 0;
    epoch_start_ = setup_.ledger.totals();
    last_save_ = std::chrono::steady_clock::now();
  }

  // After each step of a time-boxed run: is there time for another, and how far will it come?
  void follow_the_clock() {
    TimeBox& box = *setup_.time_box;
    const double now = elapsed();
    box.step_took(seconds_since(step_start_));
    box.advance(now);
    setup_.state.progress = box.progress();
    setup_.total_steps = setup_.state.step + std::llround(box.steps_left(now));
    setup_.epochs = (setup_.total_steps + setup_.steps_per_epoch - 1) / setup_.steps_per_epoch;
  }

  void count(const StepBatch& batch, const StepResult& result, double seconds) {
    ++setup_.state.step;
    setup_.state.cursor = batch.next;
    setup_.state.tokens_seen += result.tokens;
    auto& sums =
        setup_.state.accumulators;  // since the last logged line; saved, so that a resumed curve has the same lines
    if (std::isfinite(result.loss_sum)) {  // a skipped step that is finite shows in the curve; one that is not, cannot
      sums["loss_sum"] += result.loss_sum;
      sums["correct"] += static_cast<double>(result.correct);
      sums["tokens"] += static_cast<double>(result.tokens);
      epoch_loss_ += result.loss_sum;
    }
    window_seconds_ += seconds;
    window_tokens_ += result.tokens;
    ++window_steps_;
    last_gradient_norm_ = result.gradient_norm;
    tokens_ += result.tokens;
    epoch_tokens_ += result.tokens;
    ++steps_;
    ++epoch_steps_;
    if (steps_ > 1 && steps_ <= kEarlySteps) {
      early_seconds_ += seconds;
      early_tokens_ += result.tokens;
    }
    sequences_ += batch.sequences;
    epoch_sequences_ += batch.sequences;
    watch_.count(batch.cursor.epoch + 1, result.tokens, batch.sequences);
  }

  void after_step(ProgressBar& bar, const StepBatch& batch, double rate) {
    const TrainingOptions& training = setup_.job.training;
    const bool last = is_over();
    if (steps_ == kEarlySteps) say_time_per_epoch();
    if (setup_.time_box && steps_ == 1) time_evaluation(setup_);
    if (setup_.time_box && steps_ == kStepsBeforeExpecting) expected_steps_ = tell_expectation(setup_);
    const Progress progress = make_progress(batch);
    if (setup_.state.step % training.logging_steps == 0 || last) {
      log_step(batch, rate);
      bar.log(progress);
    } else {
      bar.update(progress);
    }
    const bool evaluates = training.eval_steps > 0 ? setup_.state.step % training.eval_steps == 0 : batch.last_of_epoch;
    bool best = false;
    const auto pause = std::chrono::steady_clock::now();
    const bool evaluated = (evaluates || last) && !setup_.data.validation.chunks.empty();
    if (evaluated) best = evaluate(bar, batch);
    if (evaluates || last) sample(bar, batch);
    watch_.histograms(setup_.state.step);
    if (batch.last_of_epoch || last) end_epoch(bar, batch);
    if (evaluated && setup_.time_box) setup_.time_box->evaluation_took(seconds_since(pause));
    const bool saves = (training.save_steps > 0 ? setup_.state.step % training.save_steps == 0 : batch.last_of_epoch) ||
                       (training.save_minutes > 0 && seconds_since(last_save_) >= 60 * training.save_minutes);
    if (saves || last || stop_early_ || (best && training.load_best_model_at_end)) {
      bar.clear();
      save();
    }
  }

  Progress make_progress(const StepBatch& batch) const {
    const double elapsed = seconds_since(started_);
    Progress progress;
    progress.epoch = batch.cursor.epoch + 1;
    progress.epochs = setup_.epochs;
    progress.step = setup_.state.step;
    progress.steps = setup_.total_steps;
    const auto& sums = setup_.state.accumulators;
    const auto tokens = sums.find("tokens");
    progress.loss =
        tokens != sums.end() && tokens->second > 0 ? sums.at("loss_sum") / tokens->second : last_logged_loss_;
    progress.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : 0;
    progress.elapsed_seconds = elapsed;
    progress.seconds_left = elapsed / static_cast<double>(std::max<int64_t>(1, steps_)) *
                            static_cast<double>(setup_.total_steps - setup_.state.step);
    return progress;
  }

  void say_time_per_epoch() {
    const double per_token = early_seconds_ / static_cast<double>(std::max<int64_t>(1, early_tokens_));
    say("time per epoch: about {} ({} tokens, measured over the first steps)",
        format_duration(per_token * setup_.data.train.rows_per_epoch()),
        format_count(setup_.data.train.rows_per_epoch()));
  }

  // The peak beside the steps it is compared with: at most 3 ms a second.
  void sample_peak() {
    if (seconds_since(peak_sampled_) < 1) return;
    setup_.peak->sample();
    peak_sampled_ = std::chrono::steady_clock::now();
  }

  void log_step(const StepBatch& batch, double rate) {
    auto& sums = setup_.state.accumulators;
    StepMetrics line;
    line.step = setup_.state.step;
    line.epoch = batch.cursor.epoch + 1;
    line.tokens = setup_.state.tokens_seen;
    const double tokens = sums["tokens"];  // 0: none of the steps was finite, nor is the loss
    line.loss = tokens > 0 ? sums["loss_sum"] / tokens : std::nan("");
    line.accuracy = tokens > 0 ? sums["correct"] / tokens : std::nan("");
    line.learning_rate = rate;
    line.gradient_norm = last_gradient_norm_;
    line.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : 0;
    line.step_ms = 1e3 * window_seconds_ / static_cast<double>(std::max<int64_t>(1, window_steps_));
    line.seconds = watch_.seconds();
    line.skipped_updates = setup_.state.guard.skipped;
    line.rollbacks = setup_.state.guard.rollbacks;
    setup_.metrics->append(line);
    watch_.step(line);
    sample_peak();
    setup_.summary.last_step = line;
    last_logged_loss_ = line.loss;
    sums.clear();
    window_seconds_ = 0;
    window_tokens_ = window_steps_ = 0;
  }

  bool evaluate(ProgressBar& bar, const StepBatch& batch) {
    const EvaluationResult result =
        setup_.engine->evaluate(*setup_.data.validation_stream, setup_.data.validation.chunks, setup_.ledger);
    EvaluationMetrics line{setup_.state.step,   batch.cursor.epoch + 1, result.loss,
                           result.perplexity(), result.accuracy,        watch_.seconds()};
    setup_.metrics->append(line);
    watch_.evaluation(line);
    setup_.summary.last_evaluation = line;
    const bool best = result.loss < setup_.state.best_validation_loss;
    if (best) {
      best_before_ =
          BestEvaluation{setup_.state.best_validation_loss, setup_.state.best_step, setup_.summary.best_evaluation};
      setup_.state.best_validation_loss = result.loss;
      setup_.state.best_step = setup_.state.step;
      setup_.state.evaluations_without_improvement = 0;
      setup_.summary.best_evaluation = line;
    } else {
      ++setup_.state.evaluations_without_improvement;
      stop_early_ = patience_is_over();
    }
    bar.clear();
    say("step {}: validation loss {:.4f}, perplexity {}, accuracy {:.2f} %{}", setup_.state.step, result.loss,
        format_perplexity(result.perplexity()), 100 * result.accuracy, best ? ", the best so far" : "");
    if (stop_early_) {
      say("early stopping: no better validation loss in {} evaluations; the best was {:.4f} at step {}",
          setup_.state.evaluations_without_improvement, setup_.state.best_validation_loss, setup_.state.best_step);
    }
    return best;
  }

  void sample(ProgressBar& bar, const StepBatch& batch) {
    bar.clear();
    watch_.sample(setup_.state.step, batch.cursor.epoch + 1);
  }

  void end_epoch(ProgressBar& bar, const StepBatch& batch) {
    bar.clear();
    const Ledger::Totals now = setup_.ledger.totals();
    const Ledger::Totals epoch = now - epoch_start_;
    const Speed speed{epoch.seconds(),       epoch_tokens_,         epoch_steps_,           epoch_sequences_,
                      setup_.flop_per_token, setup_.peak->gflops(), training_seconds(epoch)};
    say("\nepoch {}/{}: training loss {:.4f}{}", batch.cursor.epoch + 1, setup_.epochs,
        epoch_loss_ / static_cast<double>(std::max<int64_t>(1, epoch_tokens_)),
        setup_.summary.last_evaluation
            ? fmt::format(", validation loss {:.4f}, perplexity {}", setup_.summary.last_evaluation->validation_loss,
                          format_perplexity(setup_.summary.last_evaluation->validation_perplexity))
            : std::string());
    say("{}", ledger_table(epoch, speed));
    say("{}\n", speed_line(speed));
    epoch_rows_.push_back({batch.cursor.epoch + 1, setup_.state.step,
                           epoch_loss_ / static_cast<double>(std::max<int64_t>(1, epoch_tokens_)),
                           setup_.summary.last_evaluation, speed, epoch_skipped_});
    watch_.end_epoch(epoch);
    epoch_start_ = setup_.ledger.totals();
    epoch_tokens_ = epoch_steps_ = epoch_sequences_ = epoch_skipped_ = 0;
    epoch_loss_ = 0;
  }

  // The best model is one that can be loaded: where it could not be saved, the best before it is kept instead.
  void forget_best() {
    setup_.state.best_validation_loss = best_before_->loss;
    setup_.state.best_step = best_before_->step;
    setup_.summary.best_evaluation = best_before_->line;
    best_before_.reset();
  }

  void save() {
    Ledger::Hold hold(setup_.ledger, Phase::checkpoint);
    last_save_ = std::chrono::steady_clock::now();
    setup_.state.elapsed_seconds = elapsed();
    setup_.state.guard.healthy = guard_.healthy();
    setup_.metrics->sync();
    watch_.close_stretch();  // before the checkpoint: what comes after it is written again by a resumed run
    watch_.sync();
    const SaveResult saved = save_checkpoint(setup_.directory.path(), setup_.engine->parameters(), setup_.state);
    if (!saved.ok()) {
      warn("{}", saved.problem);
      save_failed_ = true;
      if (setup_.job.training.load_best_model_at_end && best_before_) forget_best();
      return;
    }
    save_failed_ = false;
    best_before_.reset();
    const std::string problem =
        prune_checkpoints(setup_.directory.path(), setup_.job.training.save_total_limit, setup_.state.best_step);
    if (!problem.empty()) warn("{}", problem);
    if (setup_.time_box) setup_.time_box->save_took(seconds_since(last_save_));
  }

  void load_best() {
    Ledger::Scope scope(setup_.ledger, Phase::checkpoint);
    for (const CheckpointPlace& place : list_checkpoints(setup_.directory.path())) {
      if (place.step != setup_.state.best_step) continue;
      load_model(place.path, setup_.engine->parameters());
      setup_.engine->parameters_changed();
      say("the best model, of step {} (validation loss {:.4f}), is loaded", setup_.state.best_step,
          setup_.state.best_validation_loss);
      return;
    }
    warn("the checkpoint of the best model, of step {} (validation loss {:.4f}), is gone; the model is that of step {}",
         setup_.state.best_step, setup_.state.best_validation_loss, setup_.state.step);
  }

  TrainOutcome finish() {
    const bool finished = !interrupted_;
    if (finished && setup_.job.training.load_best_model_at_end && setup_.state.best_step >= 0 &&
        setup_.state.best_step != setup_.state.step) {
      load_best();
    }
    if (!setup_.metrics->problem().empty()) warn("{}", setup_.metrics->problem());
    const Ledger::Totals totals = setup_.ledger.totals();
    const Speed speed{
        totals.seconds(),        tokens_, steps_, sequences_, setup_.flop_per_token, setup_.peak->gflops(),
        training_seconds(totals)};
    setup_.summary.parameters = setup_.memory.parameters;
    setup_.summary.model_bytes = setup_.memory.parameters * size_of(DType::f32);
    for (int i = 0; i < kPhases; ++i) {
      const Phase phase = static_cast<Phase>(i);
      setup_.summary.ledger.emplace_back(std::string(phase_name(phase)), totals.seconds(phase));
    }
    setup_.summary.wall_seconds = totals.seconds();
    setup_.summary.run_tokens_per_second = speed.tokens_per_second();
    setup_.summary.gflops = speed.gflops();
    setup_.summary.peak_gflops = setup_.peak->gflops();
    setup_.summary.utilisation = speed.utilisation();
    setup_.summary.peak_memory_bytes = peak_memory_bytes();
    setup_.summary.precision = setup_.choices.compute_type == DType::bf16 ? "bf16" : "fp32";
    setup_.summary.isa = std::string(isa_name(active_isa()));
    setup_.summary.device = "cpu";
    setup_.summary.threads = Team::instance().size();
    setup_.summary.skipped_updates = setup_.state.guard.skipped;
    setup_.summary.rollbacks = setup_.state.guard.rollbacks;
    setup_.summary.ended = interrupted_ ? "interrupted" : stop_early_ ? "early stopping" : "finished";
    if (finished && steps_ == 0 &&
        summary_says(setup_.directory.summary_path(), setup_.state.step, setup_.summary.ended)) {
      say("{} had ended after step {} ({}): nothing was left to do", setup_.directory.path(), setup_.state.step,
          setup_.summary.ended);
      return {interrupted_, setup_.directory.path(), setup_.summary};
    }
    watch_.end(setup_.summary.ended);
    if (!watch_.problem().empty()) warn("{}", watch_.problem());
    std::string unsaved = save_failed_ ? "the last checkpoint" : "";
    try {
      write_summary(setup_.directory.summary_path(), setup_.summary);
    } catch (const UserError& error) {
      warn("{}", error.what());
      if (unsaved.empty()) unsaved = "summary.json";
    }
    if (!epoch_rows_.empty()) say("{}", epoch_table(epoch_rows_));
    say("whole run:\n{}", ledger_table(totals, speed));
    say("{}", speed_line(speed));
    if (setup_.state.guard.skipped + setup_.state.guard.rollbacks > 0) {
      say("divergence guard: {} updates skipped, {} times back to an earlier step; the rate is {:g} times the "
          "schedule's",
          setup_.state.guard.skipped, setup_.state.guard.rollbacks, setup_.state.guard.rate_factor);
    }
    if (setup_.time_box && finished) {
      say("training.stop {}: ended after {}, {} steps{}", setup_.job.training.stop, format_duration(elapsed()),
          setup_.state.step, expected_steps_ > 0 ? fmt::format(" ({} were expected)", expected_steps_) : "");
    }
    if (!unsaved.empty()) {
      user_error("{}: {}, but {} could not be saved; mend that and add --resume to go on from {}",
                 setup_.directory.path(), setup_.summary.ended, unsaved,
                 latest_checkpoint(setup_.directory.path()).value_or("the beginning"));
    }
    return {interrupted_, setup_.directory.path(), setup_.summary};
  }

  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static constexpr int64_t kEarlySteps = 3;
  static constexpr int64_t kStepsBeforeExpecting = 5;

  TrainingSetup setup_;
  DivergenceGuard guard_;
  RunWatch watch_;
  std::chrono::steady_clock::time_point started_, step_start_, last_save_, peak_sampled_;
  Ledger::Totals epoch_start_;
  // Of this process: the whole, the epoch, and since the last logged line.
  int64_t tokens_ = 0, steps_ = 0, sequences_ = 0;
  int64_t epoch_tokens_ = 0, epoch_steps_ = 0, epoch_sequences_ = 0, epoch_skipped_ = 0;
  int64_t expected_steps_ = 0;  // of a time-boxed run, as it was told
  double epoch_loss_ = 0;
  std::vector<EpochRow> epoch_rows_;
  struct BestEvaluation {
    double loss;
    int64_t step;
    std::optional<EvaluationMetrics> line;
  };
  std::optional<BestEvaluation> best_before_;  // while the best model is not saved yet
  int64_t window_tokens_ = 0, window_steps_ = 0;
  int64_t early_tokens_ = 0;  // of the first steps but the very first, which is slow
  double early_seconds_ = 0;
  double window_seconds_ = 0, last_gradient_norm_ = 0, last_logged_loss_ = 0;
  bool stop_early_, interrupted_ = false, save_failed_ = false;
};

}  // namespace

TrainOutcome train(Job job, const TrainRequest& request) { return Trainer(std::move(job), request).run(); }

}  // namespace brisk
