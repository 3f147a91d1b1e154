#include "train/run/trainer.h"

#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/metrics.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "train/engine/divergence_guard.h"
#include "train/record/run_text.h"
#include "train/run/best_model.h"
#include "train/run/expectation.h"
#include "train/run/rollback.h"
#include "train/run/run_end.h"
#include "train/run/run_watch.h"
#include "train/run/setup.h"
#include "train/run/step_log.h"

namespace brisk {

namespace {

class Trainer {
 public:
  Trainer(Job job, const TrainRequest& request)
      : setup_(std::move(job), request),
        guard_(setup_.job.training, setup_.state.guard),
        watch_(setup_),
        best_(setup_),
        log_(setup_),
        on_step_(request.on_step),
        on_evaluation_(request.on_evaluation),
        stop_early_(best_.patience_is_over()) {}

  TrainOutcome run() {
    setup_.ledger.enter(Phase::other);
    loop();
    if (!interrupted_ && setup_.job.training.load_best_model_at_end) best_.load();
    if (!details_.text.empty()) say("the best evaluation, of step {}:\n{}", setup_.state.best_step, details_.text);
    if (!setup_.metrics->problem().empty()) warn("{}", setup_.metrics->problem());
    return end_run(setup_, watch_,
                   {.ended = interrupted_  ? "interrupted"
                             : stop_early_ ? kEndedEarly
                                           : "finished",
                    .interrupted = interrupted_,
                    .save_failed = save_failed_,
                    .steps = log_.steps(),
                    .speed = log_.speed(setup_.ledger.totals()),
                    .epochs = epoch_rows_,
                    .expected_steps = expected_steps_});
  }

 private:
  void loop() {
    LogSink& log = Runtime::current().log();
    const ProgressScope progress(log);
    last_save_ = peak_sampled_ = now();
    if (setup_.gpu) setup_.gpu->begin();
    log_.begin_epoch();
    if (setup_.state.evaluation_due) {
      const DataCursor& next = setup_.state.cursor;
      finish_step(log, {.epoch = next.epoch - (next.step == 0 ? 1 : 0), .last_of_epoch = next.step == 0});
      if (!interrupted_) save();  // it is not due any more
    }
    while (!is_over() && !stop_early_ && !interrupted_) {
      interrupted_ = interrupt_requested();
      if (interrupted_) break;
      step_start_ = now();
      const StepBatch batch = next_batch();
      const int64_t step = setup_.state.step + 1;
      const double rate = setup_.state.guard.rate_factor *
                          (setup_.time_box ? setup_.time_box->rate(step, elapsed()) : setup_.schedule.at(step));
      const int64_t before = now();
      const StepResult result = setup_.engine->train_step(batch, step, rate, setup_.ledger, guard_.limits(),
                                                          [&] { return look_ahead(step); });
      Ledger::Scope scope(setup_.ledger, Phase::logging);
      if (!passes(step, result)) continue;
      advance(batch, result);
      log_.count(batch, result, seconds_since(before));
      watch_.count(batch.cursor.epoch + 1, result.tokens, batch.sequences);
      watch_.gradients_are_scaled(result.scaling);
      if (setup_.time_box) follow_the_clock();
      after_step(log, batch, rate);
    }
    log.clear_progress();
    if (interrupted_) {
      save();
    }
  }

  StepBatch next_batch() {
    if (ahead_) return *std::exchange(ahead_, std::nullopt);
    Ledger::Scope scope(setup_.ledger, Phase::data_wait);
    return setup_.loader->next();
  }

  // The batch after that of `step`, for a GPU that has nothing left to do; null where it should not begin with it:
  // there is none, or the gradient of `step` is still to be looked at.
  const StepBatch* look_ahead(int64_t step) {
    const bool is_last = !setup_.time_box && step >= setup_.total_steps;
    if (is_last || interrupt_requested() || watch_.wants_histograms(step)) return nullptr;
    Ledger::Scope scope(setup_.ledger, Phase::data_wait);
    ahead_ = setup_.loader->next();
    return &*ahead_;
  }

  // The one place where the run moves on by a step.
  void advance(const StepBatch& batch, const StepResult& result) {
    ++setup_.state.step;
    setup_.state.cursor = batch.next;
    setup_.state.tokens_seen += result.tokens;
  }

  bool is_over() const {
    return setup_.time_box ? setup_.time_box->is_over() : setup_.state.step >= setup_.total_steps;
  }

  // What the guard says of a step; false where the run went back to an earlier one.
  bool passes(int64_t step, const StepResult& result) {
    if (result.overflowed) {  // what loss scaling is for: no sign of divergence
      log_.skipped();
      return true;
    }
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
      log_.skipped();
      const int64_t skipped = setup_.state.guard.skipped;
      if (skipped <= kToldOneByOne) {
        warn("step {}: the update is skipped: {}{}", step, verdict.reason,
             skipped == kToldOneByOne ? "; later ones are only counted" : "");
      }
    }
    return true;
  }

  void go_back(int64_t step, const std::string& reason) {
    setup_.state.elapsed_seconds = setup_.elapsed();
    ahead_.reset();  // the loader goes back, too
    const int64_t place = roll_back(setup_);
    watch_.went_back();
    warn("step {}: training diverged: {}. Back to {}, at {:g} times the learning rate from here on ({} of {} times)",
         step, reason, place > 0 ? fmt::format("the checkpoint of step {}", place) : "the beginning",
         setup_.state.guard.rate_factor, setup_.state.guard.rollbacks, setup_.job.training.divergence_rollbacks);
    std::erase_if(epoch_rows_, [&](const EpochRow& row) { return row.step > place; });
    log_.went_back();
    last_save_ = now();
  }

  // After each step of a time-boxed run: is there time for another, and how far will it come?
  void follow_the_clock() {
    TimeBox& box = *setup_.time_box;
    const double used = elapsed();
    box.step_took(agreed_seconds_since(step_start_));
    box.advance(used);
    setup_.state.progress = box.progress();
    setup_.total_steps = setup_.state.step + std::llround(box.steps_left(used));
    setup_.epochs = divide_up(setup_.total_steps, setup_.steps_per_epoch);
  }

  void after_step(LogSink& log, const StepBatch& batch, double rate) {
    const TrainingOptions& training = setup_.job.training;
    const bool last = is_over();
    if (log_.has_early_steps()) say_time_per_epoch();
    if (setup_.time_box && log_.steps() == 1) time_evaluation(setup_);
    if (setup_.time_box && log_.steps() == kStepsBeforeExpecting) expected_steps_ = tell_expectation(setup_);
    const Progress progress = log_.progress(batch);
    if (setup_.state.step % training.logging_steps == 0 || last) {
      log_step(batch, rate);
      log.progress(progress, true);
    } else {
      log.progress(progress, false);
    }
    if (on_step_) on_step_(progress);
    finish_step(log, {batch.cursor.epoch, batch.last_of_epoch});
  }

  // Where in the data a step was.
  struct StepPlace {
    int64_t epoch = 0;
    bool last_of_epoch = false;
  };

  // What follows some steps: evaluation, samples, the end of an epoch, a checkpoint.
  void finish_step(LogSink& log, const StepPlace& place) {
    const TrainingOptions& training = setup_.job.training;
    const bool last = is_over();
    const bool evaluates = training.eval_steps > 0 ? setup_.state.step % training.eval_steps == 0 : place.last_of_epoch;
    bool best = false;
    const int64_t pause = now();
    const bool evaluated = (evaluates || last) && !setup_.data.validation->empty();
    setup_.state.evaluation_due = false;
    if (evaluated) {
      const std::optional<EvaluationResult> result = measure();
      setup_.state.evaluation_due = !result;
      interrupted_ = !result;
      if (interrupted_) return;
      best = take_evaluation(log, place, *result);
    }
    if (evaluates || last) sample(log, place);
    watch_.histograms(setup_.state.step);
    const bool trained = log_.steps() > 0;  // or else another process has told of the epoch's steps
    if ((place.last_of_epoch || last) && trained) end_epoch(log, place);
    if (evaluated && setup_.time_box) setup_.time_box->evaluation_took(agreed_seconds_since(pause));
    const bool saves = (training.save_steps > 0 ? setup_.state.step % training.save_steps == 0 : place.last_of_epoch) ||
                       (training.save_minutes > 0 && agreed_seconds_since(last_save_) >= 60 * training.save_minutes);
    if (saves || last || stop_early_ || (best && training.load_best_model_at_end)) {
      log.clear_progress();
      save();
    }
  }

  void say_time_per_epoch() const {
    say("time per epoch: about {} ({} tokens, measured over the first steps)",
        format_duration(log_.early_seconds_per_token() * setup_.data.rows_per_epoch),
        format_count(setup_.data.rows_per_epoch));
  }

  // The peak beside the steps it is compared with: at most 3 ms a second.
  void sample_peak() {
    if (seconds_since(peak_sampled_) < 1) return;
    setup_.peak->sample();
    peak_sampled_ = now();
  }

  void log_step(const StepBatch& batch, double rate) {
    const StepMetrics line = log_.line(batch, rate, watch_.seconds());
    setup_.metrics->append(line);
    watch_.step(line);
    sample_peak();
    setup_.summary.last_step = line;
  }

  // None where it was cancelled.
  std::optional<EvaluationResult> measure() {
    try {
      EvaluationResult result = setup_.engine->evaluate(*setup_.data.validation, setup_.ledger);
      Ledger::Hold hold(setup_.ledger, Phase::evaluation);
      setup_.task->add_metrics(setup_.engine->model(), setup_.engine->parameters(), *setup_.data.tokenizer,
                               *setup_.data.validation, result.metrics);
      return result;
    } catch (const Cancelled&) {
      return std::nullopt;
    }
  }

  // Whether it is the best so far.
  bool take_evaluation(LogSink& log, const StepPlace& place, const EvaluationResult& result) {
    const EvaluationMetrics line{setup_.state.step, place.epoch + 1, result.metrics, watch_.seconds()};
    // One that was due may be there: a process that made up for it ended before it had saved that.
    const auto& written = setup_.summary.last_evaluation;
    if (!written || written->step != line.step) setup_.metrics->append(line);
    watch_.evaluation(line);
    setup_.summary.last_evaluation = line;
    const bool best = best_.see(line);
    if (best) keep_details(result);
    stop_early_ = setup_.processes().broadcast(!best && best_.patience_is_over());
    log.clear_progress();
    say("step {}: validation {}{}", line.step, metrics_text(line.metrics, setup_.job.training.best_by),
        best ? ", the best so far" : "");
    if (stop_early_) say("{}", best_.early_stopping_text());
    if (on_evaluation_) on_evaluation_(line);
    return best;
  }

  void keep_details(const EvaluationResult& result) {
    details_ = setup_.task->details(result, setup_.data.labels);
    if (details_.json.empty()) return;
    try {
      write_file_atomically(setup_.directory.evaluation_path(), details_.json + "\n");
    } catch (const UserError& error) {  // a full disk: training goes on
      warn("{}", error.what());
    }
  }

  void sample(LogSink& log, const StepPlace& place) {
    log.clear_progress();
    watch_.sample(setup_.state.step, place.epoch + 1);
  }

  void end_epoch(LogSink& log, const StepPlace& place) {
    log.clear_progress();
    const Ledger::Totals totals = setup_.ledger.totals();
    const Ledger::Totals epoch = totals - log_.epoch_start();
    const EpochRow row = log_.end_epoch(place.epoch + 1, totals);
    say("");
    say("epoch {}/{}: training loss {:.4f}{}", row.epoch, setup_.epochs, row.training_loss,
        row.evaluation ? ", validation " + metrics_text(row.evaluation->metrics, setup_.job.training.best_by) : "");
    say_table(ledger_table(epoch, row.speed));
    say("{}", speed_line(row.speed));
    say("");
    epoch_rows_.push_back(row);
    watch_.end_epoch(epoch);
    log_.begin_epoch();
  }

  void save() {
    Ledger::Hold hold(setup_.ledger, Phase::checkpoint);
    last_save_ = now();
    setup_.state.elapsed_seconds = setup_.elapsed();
    setup_.state.guard.healthy = guard_.healthy();
    if (const LossScale* scale = setup_.engine->loss_scale()) setup_.state.loss_scale = *scale;
    setup_.metrics->sync();
    watch_.close_stretch();  // before the checkpoint: what comes after it is written again by a resumed run
    watch_.sync();
    const SaveResult saved = save_checkpoint(setup_.directory.path(), setup_.engine->parameters(), setup_.state);
    if (!saved.ok()) {
      warn("{}", saved.problem);
      save_failed_ = true;
      best_.could_not_save();
      return;
    }
    save_failed_ = false;
    best_.saved();
    const std::string problem =
        prune_checkpoints(setup_.directory.path(), setup_.job.training.save_total_limit, setup_.state.best_step);
    if (!problem.empty()) warn("{}", problem);
    if (setup_.time_box) setup_.time_box->save_took(agreed_seconds_since(last_save_));
  }

  int64_t now() const { return setup_.clock().nanoseconds(); }
  double seconds_since(int64_t start) const { return setup_.clock().seconds_since(start); }

  // What a decision reads of clocks and signals is the same in all processes.
  double agreed_seconds_since(int64_t start) const {
    return setup_.processes().broadcast(seconds_since(start));
  }
  double elapsed() { return setup_.processes().broadcast(setup_.elapsed()); }
  bool interrupt_requested() const { return setup_.processes().broadcast(Runtime::current().cancelled()); }

  static constexpr int64_t kStepsBeforeExpecting = 5;

  TrainingSetup setup_;
  DivergenceGuard guard_;
  RunWatch watch_;
  BestModel best_;
  StepLog log_;
  const std::function<void(const Progress&)> on_step_;
  const std::function<void(const EvaluationMetrics&)> on_evaluation_;
  std::optional<StepBatch> ahead_;  // of the coming step, which a GPU has begun with
  int64_t step_start_ = 0, last_save_ = 0, peak_sampled_ = 0;  // by the clock, in nanoseconds
  int64_t expected_steps_ = 0;  // of a time-boxed run, as it was told
  std::vector<EpochRow> epoch_rows_;
  Task::Description details_;  // of the best evaluation
  bool stop_early_, interrupted_ = false, save_failed_ = false;
};

}  // namespace

TrainOutcome train(Job job, const TrainRequest& request) {
  const CacheDirectoryScope cache(job.data.cache_dir);
  const ThreadsScope threads(job.training.threads > 0 ? thread_count_for(job.training.threads, "training.threads") : 0);
  Trainer trainer(std::move(job), request);
  if (request.before_first_step) request.before_first_step();
  return trainer.run();
}

}  // namespace brisk
