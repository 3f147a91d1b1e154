#include "train/run/trainer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/machine.h"
#include "base/metrics.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "train/engine/divergence_guard.h"
#include "train/record/run_text.h"
#include "train/run/best_model.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/expectation.h"
#include "train/run/rollback.h"
#include "train/run/run_end.h"
#include "train/run/run_health.h"
#include "train/run/run_watch.h"
#include "train/run/setup.h"
#include "train/run/step_log.h"

namespace brisk {

namespace {

SaveResult write_nothing(const std::string& /*run*/, const CheckpointTensors& /*tensors*/,
                         const CheckpointState& /*state*/) {
  return {};
}

class Trainer {
 public:
  Trainer(Job job, const TrainRequest& request)
      : setup_(std::move(job), request),
        guard_(setup_.job.training, setup_.state.guard),
        watch_(setup_),
        best_(setup_),
        log_(setup_),
        saver_({.run = setup_.directory.path(),
                .keep = setup_.job.training.save_total_limit,
                .copy_bytes = setup_.memory.copy_bytes,
                .write = request.trial ? CheckpointWrite(write_nothing) : request.write_checkpoint}),
        on_step_(request.on_step),
        on_evaluation_(request.on_evaluation),
        stop_early_(best_.patience_is_over()) {}

  TrainOutcome run() {
    setup_.ledger.enter(Phase::other);
    loop();
    if (!interrupted_ && setup_.job.training.load_best_model_at_end) best_.load();
    if (!details_.text.empty()) say("the best evaluation, of step {}:\n{}", setup_.state.best_step, details_.text);
    if (!setup_.metrics->problem().empty()) warn("{}", setup_.metrics->problem());
    return end_run(
        setup_, watch_,
        {.ended = interrupted_  ? "interrupted"
                  : stop_early_ ? kEndedEarly
                                : "finished",
         .interrupted = interrupted_,
         .save_failed = save_failed_,
         .steps = log_.steps(),
         .speed = log_.speed(setup_.ledger.totals()),
         .expected_steps = expected_steps_,
         .warnings = setup_.request.trial ? std::vector<std::string>{} : health_warnings(setup_, last_scores_)});
  }

 private:
  void loop() {
    LogSink& log = Runtime::current().log();
    const ProgressScope progress(log);
    last_save_ = planned_at_ = peak_sampled_ = line_told_ = now();
    planned_step_ = setup_.state.step;
    if (setup_.gpu) setup_.gpu->begin();
    log_.begin_epoch();
    if (setup_.state.evaluation_due) {
      finish_step(log, last_place(), true);
      if (!interrupted_) save(SaveMode::in_background);  // it is not due any more
    }
    while (!is_over() && !stop_early_ && !interrupted_) {
      interrupted_ = interrupt_requested();
      if (interrupted_) break;
      if (saver_.in_flight() && setup_.processes().broadcast(saver_.is_done())) settle_save();
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
      log_.count(result, seconds_since(before));
      watch_.count(batch.cursor.epoch + 1, result.tokens, result.sequences);
      watch_.gradients_are_scaled(result.scaling);
      if (setup_.time_box) follow_the_clock();
      after_step(log, batch, rate);
    }
    log.clear_progress();
    settle_save();
    if (interrupted_) {
      keep_unfinished_epoch();
      save(SaveMode::at_once);
    }
  }

  // A run that ends inside an epoch shows it in its table, too.
  void keep_unfinished_epoch() {
    const StepPlace place = last_place();
    if (log_.steps() > 0 && !place.last_of_epoch) watch_.epoch(log_.epoch_so_far(place.cursor, setup_.ledger.totals()));
  }

  // Of the last step that was done.
  StepPlace last_place() const {
    const DataCursor& next = setup_.state.cursor;
    if (next.step > 0) return {{next.epoch, next.step - 1}, false};
    return {{next.epoch - 1, setup_.steps_per_epoch - 1}, true};
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
      if (!result.finite()) give_up(step, result, "");
      return true;
    }
    const DivergenceGuard::Verdict verdict = guard_.observe(step, result);
    if (verdict.diverged) {
      settle_save();
      if (setup_.state.guard.rollbacks >= setup_.job.training.divergence_rollbacks)
        give_up(step, result, verdict.reason);
      go_back(step, verdict.reason);
      return false;
    }
    constexpr int64_t kToldOneByOne = 5;
    if (verdict.skipped) {
      log_.skipped();
      const int64_t skipped = setup_.state.guard.skipped;
      if (skipped <= kToldOneByOne) {
        warn("step {}: update skipped: {}{}", step, verdict.reason,
             skipped == kToldOneByOne ? "; further skips are counted but not printed" : "");
      }
    }
    return true;
  }

  [[noreturn]] void give_up(int64_t step, const StepResult& result, const std::string& reason) {
    const std::string what = divergence_text(setup_, step, result, reason);
    settle_save();  // the message names the last checkpoint
    Runtime::current().log().clear_progress();
    end_diverged(setup_, watch_, {.steps = log_.steps(), .speed = log_.speed(setup_.ledger.totals())}, step, what);
    user_error("{}; the last checkpoint is {}", what, latest_checkpoint(setup_.directory.path()).value_or("none yet"));
  }

  void go_back(int64_t step, const std::string& reason) {
    setup_.state.elapsed_seconds = setup_.elapsed();
    ahead_.reset();  // the loader goes back, too
    const int64_t place = roll_back(setup_);
    watch_.went_back();
    warn(
        "step {}: training diverged: {}. Returning to {}, with {:g} times the scheduled learning rate (rollback {} of "
        "{})",
        step, reason, place > 0 ? fmt::format("the checkpoint of step {}", place) : "the beginning",
        setup_.state.guard.rate_factor, setup_.state.guard.rollbacks, setup_.job.training.divergence_rollbacks);
    log_.went_back();
    saved_step_ = -1;
    last_save_ = planned_at_ = now();
    planned_step_ = place;
  }

  // After each step of a time-boxed run: is there time for another, and how far will it come?
  void follow_the_clock() {
    TimeBox& box = *setup_.time_box;
    const double used = elapsed();
    box.step_took(agreed_seconds_since(step_start_));
    progress_before_ = box.progress();
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
    const bool logged = last || setup_.state.step % logging_steps() == 0;
    if (logged) log_step(batch, rate);
    const bool told = last || (training.logging_steps > 0 ? logged : line_is_due());
    if (told) line_told_ = now();
    log.progress(progress, told);
    if (on_step_) on_step_(progress);
    const StepPlace place{batch.cursor, batch.last_of_epoch};
    finish_step(log, place, evaluates_after(place));
  }

  // What follows some steps: evaluation, samples, the end of an epoch, a checkpoint.
  void finish_step(LogSink& log, const StepPlace& place, bool evaluates) {
    const TrainingOptions& training = setup_.job.training;
    const bool last = is_over();
    bool best = false;
    const int64_t pause = now();
    const bool evaluated = (evaluates || last) && !setup_.data.validation->empty();
    const bool ends_epoch = place.last_of_epoch || last;
    setup_.state.evaluation_due = false;
    if (evaluated) {
      const std::optional<EvaluationResult> result = measure();
      setup_.state.evaluation_due = interrupted_ = !result;
      if (interrupted_) return;
      best = take_evaluation(log, place, *result, !ends_epoch);
    }
    if (evaluates || last) sample(log, place);
    watch_.histograms(setup_.state.step);
    if (ends_epoch) {
      end_epoch(log, place, best, last || evaluated);
    } else if (stop_early_) {
      keep_unfinished_epoch();
    }
    if (stop_early_) say("{}", best_.early_stopping_text());
    if (evaluated || log_.steps() == 1) sample_memory();
    if (evaluated && setup_.time_box) setup_.time_box->evaluation_took(agreed_seconds_since(pause));
    const bool ends = last || stop_early_;
    const bool by_clock = save_is_due(setup_.state.saves, save_options(), setup_.state.step, place.last_of_epoch,
                                      agreed_seconds_since(last_save_));
    if (by_clock) plan_next_save();
    const bool saves = by_clock || (training.save_steps > 0 ? setup_.state.step % training.save_steps == 0
                                                            : training.save_steps == 0 && place.last_of_epoch);
    if (saves || ends || (best && training.load_best_model_at_end)) {
      log.clear_progress();
      save(ends ? SaveMode::at_once : SaveMode::in_background);
    }
  }

  int64_t logging_steps() const {
    constexpr int64_t kLoggingSteps = 10;
    return setup_.job.training.logging_steps > 0 ? setup_.job.training.logging_steps : kLoggingSteps;
  }

  // Where lines are not redrawn: every five seconds at first, every minute in a long run.
  bool line_is_due() {
    return seconds_since(line_told_) >= std::clamp(setup_.ledger.totals().seconds() / 30, 5.0, 60.0);
  }

  // Besides the last step.
  bool evaluates_after(const StepPlace& place) {
    const int64_t every = setup_.job.training.eval_steps;
    const bool due = every > 0         ? setup_.state.step % every == 0
                     : every == 0      ? place.last_of_epoch
                     : setup_.time_box ? setup_.time_box->evaluates(progress_before_)
                                       : setup_.evaluations.is_due(setup_.state.step);
    // In a time box, none just before the last one, whose step is not known.
    return due && !(setup_.time_box && setup_.time_box->ends_soon(elapsed()));
  }

  SaveOptions save_options() const {
    return {.minutes = setup_.job.training.save_minutes,
            .steps_per_epoch = setup_.steps_per_epoch,
            .after_epochs = setup_.job.training.save_steps < 0};
  }

  void plan_next_save() {
    const int64_t step = setup_.state.step;
    setup_.state.saves = next_save(save_options(), step, step - planned_step_, agreed_seconds_since(planned_at_));
    planned_step_ = step;
    planned_at_ = now();
  }

  void say_time_per_epoch() const {
    say("time per epoch: about {} ({} tokens, measured over the first steps)",
        format_duration(log_.early_seconds_per_token() * setup_.data.rows_per_epoch),
        format_count(setup_.data.rows_per_epoch));
  }

  // The peak next to the steps it is compared with: at most 3 ms a second.
  void sample_peak() {
    if (seconds_since(peak_sampled_) < 1) return;
    setup_.peak->sample();
    sample_memory();
    peak_sampled_ = now();
  }

  void sample_memory() { setup_.own_memory = std::max(setup_.own_memory, own_memory_bytes()); }

  void log_step(const StepBatch& batch, double rate) {
    const StepMetrics line = log_.line(batch, rate, watch_.seconds());
    setup_.metrics->append(line);
    watch_.step(line);
    sample_peak();
    setup_.summary.last_step = line;
  }

  // None where it was cancelled.
  std::optional<EvaluationResult> measure() {
    std::optional<EvaluationResult> result;
    try {
      result = setup_.engine->evaluate(*setup_.data.validation, setup_.ledger);
      Ledger::Hold hold(setup_.ledger, Phase::evaluation);
      setup_.task->add_metrics(setup_.engine->model(), setup_.engine->parameters(), *setup_.data.tokenizer,
                               *setup_.data.validation, result->metrics);
    } catch (const Cancelled&) {
      result.reset();
    }
    const bool complete = setup_.processes().broadcast(result.has_value());
    if (complete && !result) throw Cancelled();  // the others go on, and this process cannot without the result
    return complete ? std::move(result) : std::nullopt;
  }

  // Whether it is the best so far. `tells`: what it is, at once; otherwise the line of the epoch does.
  bool take_evaluation(LogSink& log, const StepPlace& place, const EvaluationResult& result, bool tells) {
    const EvaluationMetrics line{setup_.state.step, place.cursor.epoch + 1, result.metrics, watch_.seconds()};
    // One that was due may be there: a process that made up for it ended before it had saved that.
    const auto& written = setup_.summary.last_evaluation;
    if (!written || written->step != line.step) setup_.metrics->append(line);
    watch_.evaluation(line);
    setup_.summary.last_evaluation = line;
    last_scores_ = result.classes;
    if (best_.waits_for_save()) settle_save();
    const bool best = best_.see(line);
    if (best) keep_details(result);
    stop_early_ = setup_.processes().broadcast(!best && best_.patience_is_over());
    if (tells) {
      log.clear_progress();
      say("step {}: validation {}{}", line.step, metrics_text(line.metrics, setup_.job.training.best_by),
          best ? ", the best so far" : "");
      line_told_ = now();
    }
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
    watch_.sample(setup_.state.step, place.cursor.epoch + 1);
  }

  // Many short epochs are not a line each: `tells` those that must be.
  void end_epoch(LogSink& log, const StepPlace& place, bool best, bool tells) {
    const Ledger::Totals totals = setup_.ledger.totals();
    const Ledger::Totals epoch = totals - log_.epoch_start();
    const EpochRow row = log_.end_epoch(place, totals);
    if (tells || seconds_since(epoch_told_) >= 1) {
      log.clear_progress();
      say("{}", epoch_line(row, setup_.epochs, epoch, setup_.job.training.best_by, best));
      line_told_ = epoch_told_ = now();
    }
    watch_.end_epoch(row, epoch);
    log_.begin_epoch();
  }

  // Begins to save the run as it is after this step.
  void save(SaveMode mode) {
    Ledger::Hold hold(setup_.ledger, Phase::checkpoint);
    const int64_t start = now();
    settle_save();
    if (saved_step_ == setup_.state.step) return;  // an interrupt right after it
    last_save_ = now();
    setup_.state.elapsed_seconds = setup_.elapsed();
    setup_.state.guard.healthy = guard_.healthy();
    if (const LossScale* scale = setup_.engine->loss_scale()) setup_.state.loss_scale = *scale;
    setup_.metrics->sync();
    watch_.close_stretch();  // before the checkpoint: what comes after it is written again by a resumed run
    watch_.sync();
    saver_.begin(setup_.engine->parameters(), setup_.state, mode);
    if (const std::string note = saver_.take_note(); !note.empty()) warn("{}", note);
    save_exposed_ = agreed_seconds_since(start);
    sample_memory();
    if (mode == SaveMode::at_once) settle_save();
  }

  // Waits for the save in flight, if there is one, and tells what came of it.
  void settle_save() {
    if (!saver_.in_flight()) return;
    Ledger::Hold hold(setup_.ledger, Phase::checkpoint);
    const SavedCheckpoint saved = saver_.take();
    setup_.summary.checkpoint_write_seconds += saved.write_seconds;
    const double hidden = setup_.processes().broadcast(saved.in_background ? saved.write_seconds : 0);
    if (setup_.time_box) setup_.time_box->save_took(save_exposed_ + hidden, save_exposed_);
    save_failed_ = !saved.result.ok();
    if (save_failed_) {
      warn("{}", saved.result.problem);
      best_.could_not_save(saved.step);
      return;
    }
    saved_step_ = saved.step;
    ++setup_.summary.checkpoints_saved;
    best_.saved(saved.step);
    if (!saved.prune_problem.empty()) warn("{}", saved.prune_problem);
  }

  int64_t now() const { return setup_.clock().nanoseconds(); }
  double seconds_since(int64_t start) const { return setup_.clock().seconds_since(start); }

  // What a decision reads of clocks and signals is the same in all processes.
  double agreed_seconds_since(int64_t start) const { return setup_.processes().broadcast(seconds_since(start)); }
  double elapsed() { return setup_.processes().broadcast(setup_.elapsed()); }
  bool interrupt_requested() const { return setup_.processes().broadcast(Runtime::current().cancelled()); }

  static constexpr int64_t kStepsBeforeExpecting = 5;

  TrainingSetup setup_;
  DivergenceGuard guard_;
  RunWatch watch_;
  BestModel best_;
  StepLog log_;
  CheckpointSaver saver_;
  int64_t saved_step_ = -1;  // of the last checkpoint that this process saved
  double save_exposed_ = 0;  // seconds that the steps waited for the last one
  const std::function<void(const Progress&)> on_step_;
  const std::function<void(const EvaluationMetrics&)> on_evaluation_;
  std::optional<StepBatch> ahead_;  // of the coming step, which a GPU has begun with
  // By the clock, in nanoseconds.
  int64_t step_start_ = 0, last_save_ = 0, peak_sampled_ = 0;
  int64_t line_told_ = 0, epoch_told_ = 0;  // on the screen
  int64_t planned_at_ = 0;                  // the next save by the clock
  int64_t planned_step_ = 0;                // likewise
  double progress_before_ = 0;              // of a time box: before this step
  int64_t expected_steps_ = 0;              // of a time-boxed run, as it was told
  Task::Description details_;               // of the best evaluation
  std::optional<ClassScores> last_scores_;  // of the last one
  bool stop_early_, interrupted_ = false, save_failed_ = false;
};

}  // namespace

TrainOutcome train(Job job, const TrainRequest& request) {
  const CacheDirectoryScope cache(job.data.cache_dir);
  const ThreadsScope threads(job.training.threads > 0 ? thread_count_for(job.training.threads, "training.threads") : 0);
  if (request.dry_run) {
    const TrainingSetup setup(std::move(job), request);
    TrainOutcome outcome{false, setup.directory.path(), {}};
    outcome.summary.ended = "dry run";
    return outcome;
  }
  Trainer trainer(std::move(job), request);
  if (request.before_first_step) request.before_first_step();
  return trainer.run();
}

}  // namespace brisk
