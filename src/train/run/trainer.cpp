#include "train/run/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/metrics.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "comm/communicator.h"
#include "train/engine/divergence_guard.h"
#include "train/record/run_text.h"
#include "train/run/best_model.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/plan/expectation.h"
#include "train/run/rank_watch.h"
#include "train/run/rollback.h"
#include "train/run/run_end.h"
#include "train/run/run_health.h"
#include "train/run/run_watch.h"
#include "train/run/setup.h"
#include "train/run/step_log.h"

namespace brisk {

namespace {

class Trainer {
 public:
  Trainer(Job job, const TrainRequest& request)
      : setup_(std::move(job), request),
        guard_(plan_.job.training, run_.state.guard),
        watch_(plan_, run_, resources_),
        best_(plan_, run_),
        log_(plan_, run_, resources_),
        ranks_(plan_, run_, resources_),
        saver_({.run = plan_.directory.path(),
                .keep = plan_.writes() ? plan_.job.training.save_total_limit : 0,
                .copy_bytes = plan_.memory.copy_bytes > 0 ? plan_.memory.saved_bytes : 0,  // shares are not all alike
                .write = request.write_checkpoint,
                .is_trial = request.trial,
                .processes = &plan_.processes(),
                .own = resources_.engine->own_range()}),
        stop_early_(best_.patience_is_over()) {}

  TrainOutcome run() {
    run_.ledger.enter(Phase::other);
    if (observer_ != nullptr) observer_->prepared(plan_, run_, resources_);
    {
      const CommunicationAccounting accounting(plan_.processes(), run_.ledger);
      loop();
      resources_.engine->share_masters();
    }
    if (!interrupted_ && plan_.job.training.load_best_model_at_end) best_.load(*resources_.engine);
    if (!details_.text.empty()) say("the best evaluation, of step {}:\n{}", run_.state.best_step, details_.text);
    if (!resources_.metrics->problem().empty()) warn("{}", resources_.metrics->problem());
    return end_run(plan_, run_, resources_, watch_,
                   {.ended = interrupted_  ? "interrupted"
                             : stop_early_ ? kEndedEarly
                                           : "finished",
                    .interrupted = interrupted_,
                    .save_failed = save_failed_,
                    .speed = log_.speed(run_.ledger.totals()),
                    .expected_steps = expected_steps_,
                    .warnings = plan_.request.trial ? std::vector<std::string>{}
                                                    : health_warnings(plan_, run_.summary, last_scores_)});
  }

 private:
  void loop() {
    LogSink& log = Runtime::current().log();
    const ProgressScope progress(log);
    last_save_ = planned_at_ = peak_sampled_ = line_told_ = now();
    planned_step_ = run_.state.step;
    if (resources_.gpu) resources_.gpu->begin();
    log_.begin_epoch();
    if (run_.state.evaluation_due) {
      finish_step(log, last_place(), true);
      if (!interrupted_) save(SaveMode::in_background);  // it is not due any more
    }
    while (!is_over() && !stop_early_ && !interrupted_) {
      interrupted_ = interrupt_requested();
      if (interrupted_) break;
      if (saver_.in_flight() && saver_.is_done()) settle_save();
      step_start_ = now();
      const StepBatch batch = next_batch();
      const int64_t step = run_.state.step + 1;
      const double rate = run_.state.guard.rate_factor *
                          (run_.time_box ? run_.time_box->rate(step, elapsed()) : plan_.schedule.at(step));
      const int64_t before = now();
      const StepResult result = resources_.engine->train_step(batch, step, rate, run_.ledger, guard_.limits(),
                                                              [&] { return look_ahead(step); });
      Ledger::Scope scope(run_.ledger, Phase::logging);
      if (Communicator* ranks = plan_.processes().communicator()) ranks->at_step(step);
      if (observer_ != nullptr) observer_->after_update(batch, result);
      if (!passes(step, result)) continue;
      ++run_.state.step;  // the one place where the run moves on
      run_.state.cursor = batch.next;
      run_.state.tokens_seen += result.tokens;
      log_.count(result, seconds_since(before));
      watch_.count(batch.cursor.epoch + 1, result);
      watch_.gradients_are_scaled(result.scaling);
      if (run_.time_box) follow_the_clock();
      after_step(log, batch, rate);
      if (observer_ != nullptr) observer_->after_step();
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
    if (log_.steps() > 0 && !place.last_of_epoch) watch_.epoch(log_.epoch_so_far(place.cursor, run_.ledger.totals()));
  }

  // Of the last step that was done.
  StepPlace last_place() const {
    const DataCursor& next = run_.state.cursor;
    if (next.step > 0) return {{next.epoch, next.step - 1}, false};
    return {{next.epoch - 1, plan_.steps_per_epoch - 1}, true};
  }

  StepBatch next_batch() {
    if (ahead_) return *std::exchange(ahead_, std::nullopt);
    Ledger::Scope scope(run_.ledger, Phase::data_wait);
    return resources_.loader->next();
  }

  // The batch after that of `step`, for a GPU that has nothing left to do; null where it should not begin with it:
  // there is none, or the gradient of `step` is still to be looked at.
  const StepBatch* look_ahead(int64_t step) {
    const bool is_last = !run_.time_box && step >= run_.total_steps;
    if (is_last || interrupt_requested() || watch_.wants_histograms(step)) return nullptr;
    if (observer_ != nullptr && (observer_->wants_gradient(step) || observer_->stops_after(step))) return nullptr;
    Ledger::Scope scope(run_.ledger, Phase::data_wait);
    ahead_ = resources_.loader->next();
    return &*ahead_;
  }

  bool is_over() const { return run_.time_box ? run_.time_box->is_over() : run_.state.step >= run_.total_steps; }

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
      if (run_.state.guard.rollbacks >= plan_.job.training.divergence_rollbacks) give_up(step, result, verdict.reason);
      go_back(step, verdict.reason);
      return false;
    }
    constexpr int64_t kToldOneByOne = 5;
    if (verdict.skipped) {
      log_.skipped();
      const int64_t skipped = run_.state.guard.skipped;
      if (skipped <= kToldOneByOne) {
        warn("step {}: update skipped: {}{}", step, verdict.reason,
             skipped == kToldOneByOne ? "; further skips are counted but not printed" : "");
      }
    }
    return true;
  }

  [[noreturn]] void give_up(int64_t step, const StepResult& result, const std::string& reason) {
    const std::string what = divergence_text(plan_.job, run_.state.guard, *resources_.engine, step, result, reason);
    settle_save();  // the message names the last checkpoint
    Runtime::current().log().clear_progress();
    end_diverged(plan_, run_, resources_, watch_, {.speed = log_.speed(run_.ledger.totals())}, step, what);
    user_error("{}; the last checkpoint is {}", what, latest_checkpoint(plan_.directory.path()).value_or("none yet"));
  }

  void go_back(int64_t step, const std::string& reason) {
    run_.state.elapsed_seconds = run_.elapsed();
    ahead_.reset();  // the loader goes back, too
    const int64_t place = roll_back(plan_, run_, resources_);
    watch_.went_back();
    warn(
        "step {}: training diverged: {}. Returning to {}, with {:g} times the scheduled learning rate (rollback {} of "
        "{})",
        step, reason, place > 0 ? fmt::format("the checkpoint of step {}", place) : "the beginning",
        run_.state.guard.rate_factor, run_.state.guard.rollbacks, plan_.job.training.divergence_rollbacks);
    log_.went_back();
    saved_step_ = -1;
    last_save_ = planned_at_ = now();
    planned_step_ = place;
  }

  // After each step of a time-boxed run: is there time for another, and how far will it come?
  void follow_the_clock() {
    TimeBox& box = *run_.time_box;
    box.step_took(agreed_seconds_since(step_start_));
    // Before the first step decides anything: it touches all memory for the first time, and an evaluation guessed from
    // it could seem to fill the box.
    if (log_.steps() == 1) time_evaluation(plan_, run_, *resources_.engine);
    const double used = elapsed();
    progress_before_ = box.progress();
    box.advance(used);
    run_.state.progress = box.progress();
    run_.total_steps = run_.state.step + std::llround(box.steps_left(used));
    run_.epochs = divide_up(run_.total_steps, plan_.steps_per_epoch);
  }

  void after_step(LogSink& log, const StepBatch& batch, double rate) {
    const TrainingOptions& training = plan_.job.training;
    const bool last = is_over();
    if (log_.has_early_steps()) {
      const double tokens = plan_.data.rows_per_epoch;
      say("time per epoch: about {} ({} tokens, measured over the first steps)",
          format_duration(log_.early_seconds_per_token() * tokens), format_count(tokens));
    }
    if (run_.time_box && log_.steps() == kStepsBeforeExpecting) expected_steps_ = tell_expectation(plan_, run_);
    const Progress progress = log_.progress(batch);
    const bool logged =
        last || run_.state.step % (training.logging_steps > 0 ? training.logging_steps : kLoggingSteps) == 0;
    if (logged) log_step(batch, rate);
    const bool told = last || (training.logging_steps > 0 ? logged : line_is_due());
    if (told) line_told_ = now();
    log.progress(progress, told);
    if (plan_.request.on_step) plan_.request.on_step(progress);
    const StepPlace place{batch.cursor, batch.last_of_epoch};
    finish_step(log, place, evaluates_after(place));
  }

  // What follows some steps: evaluation, samples, the end of an epoch, a checkpoint.
  void finish_step(LogSink& log, const StepPlace& place, bool evaluates) {
    const TrainingOptions& training = plan_.job.training;
    const bool last = is_over();
    bool best = false;
    const int64_t pause = now();
    const bool evaluated = (evaluates || last) && !plan_.data.validation->empty();
    const bool ends_epoch = place.last_of_epoch || last;
    run_.state.evaluation_due = false;
    if (evaluated) {
      const std::optional<EvaluationResult> result = measure();
      run_.state.evaluation_due = interrupted_ = !result;
      if (interrupted_) return;
      best = take_evaluation(log, place, *result, !ends_epoch);
    }
    if (evaluates || last) {
      log.clear_progress();
      watch_.sample(run_.state.step, place.cursor.epoch + 1, run_.ledger);
    }
    if (watch_.wants_histograms(run_.state.step)) {
      resources_.engine->collect_gradient();
      resources_.engine->share_masters();
    }
    watch_.histograms(run_.state.step);
    if (ends_epoch) {
      end_epoch(log, place, best, last || evaluated);
    } else if (stop_early_) {
      keep_unfinished_epoch();
    }
    if (stop_early_) say("{}", best_.early_stopping_text());
    if (evaluated || log_.steps() == 1) log_.sample_memory();
    if (evaluated && run_.time_box) run_.time_box->evaluation_took(agreed_seconds_since(pause));
    const bool ends = last || stop_early_;
    const bool by_clock = save_is_due(run_.state.saves, save_options(), run_.state.step, place.last_of_epoch,
                                      agreed_seconds_since(last_save_));
    if (by_clock) {  // when it is due again
      const int64_t step = run_.state.step, steps = step - std::exchange(planned_step_, step);
      run_.state.saves = next_save(save_options(), step, steps, agreed_seconds_since(planned_at_));
      planned_at_ = now();
    }
    const bool saves = by_clock || (training.save_steps > 0 ? run_.state.step % training.save_steps == 0
                                                            : training.save_steps == 0 && place.last_of_epoch);
    if (saves || ends || (best && training.load_best_model_at_end)) {
      log.clear_progress();
      save(ends ? SaveMode::at_once : SaveMode::in_background);
    }
  }

  // Where lines are not redrawn: every five seconds at first, every minute in a long run.
  bool line_is_due() { return seconds_since(line_told_) >= std::clamp(run_.ledger.totals().seconds() / 30, 5.0, 60.0); }

  // Besides the last step.
  bool evaluates_after(const StepPlace& place) {
    const int64_t every = plan_.job.training.eval_steps;
    const bool due = every > 0       ? run_.state.step % every == 0
                     : every == 0    ? place.last_of_epoch
                     : run_.time_box ? run_.time_box->evaluates(progress_before_)
                                     : plan_.evaluations.is_due(run_.state.step);
    // In a time box, none just before the last one, whose step is not known.
    return due && !(run_.time_box && run_.time_box->ends_soon(elapsed()));
  }

  SaveOptions save_options() const {
    return {.minutes = plan_.job.training.save_minutes,
            .steps_per_epoch = plan_.steps_per_epoch,
            .after_epochs = plan_.job.training.save_steps < 0};
  }

  void log_step(const StepBatch& batch, double rate) {
    StepMetrics line = log_.line(batch, rate, run_.elapsed());
    ranks_.see(line);
    resources_.metrics->append(line);
    watch_.step(line);
    run_.summary.last_step = line;
    // The peak next to the steps it is compared with: at most 3 ms a second.
    if (seconds_since(peak_sampled_) < 1) return;
    resources_.peak->sample();
    log_.sample_memory();
    peak_sampled_ = now();
  }

  // None where it was cancelled.
  std::optional<EvaluationResult> measure() {
    std::optional<EvaluationResult> result;
    try {
      result = resources_.engine->evaluate(*plan_.data.validation, run_.ledger);
      Ledger::Hold hold(run_.ledger, Phase::evaluation);
      if (plan_.data.tokenizer)
        plan_.task->add_metrics(resources_.engine->model(), resources_.engine->parameters(), *plan_.data.tokenizer,
                                *plan_.data.validation, result->metrics);
    } catch (const Cancelled&) {
      result.reset();
    }
    const bool complete = plan_.processes().sum(result ? 0.0 : 1.0) == 0;
    return complete ? std::move(result) : std::nullopt;
  }

  // Whether it is the best so far. `tells`: what it is, at once; otherwise the line of the epoch does.
  bool take_evaluation(LogSink& log, const StepPlace& place, const EvaluationResult& result, bool tells) {
    const EvaluationMetrics line{run_.state.step, place.cursor.epoch + 1, result.metrics, run_.elapsed()};
    // One that was due may be there: a process that made up for it ended before it had saved that.
    const auto& written = run_.summary.last_evaluation;
    if (!written || written->step != line.step) resources_.metrics->append(line);
    watch_.evaluation(line);
    run_.summary.last_evaluation = line;
    last_scores_ = result.classes;
    if (best_.waits_for_save()) settle_save();
    const bool best = best_.see(line);
    if (best) keep_details(result);
    stop_early_ = plan_.processes().broadcast(!best && best_.patience_is_over());
    if (tells) {
      log.clear_progress();
      say("step {}: validation {}{}", line.step, metrics_text(line.metrics, plan_.job.training.best_by),
          best ? ", the best so far" : "");
      line_told_ = now();
    }
    if (plan_.request.on_evaluation) plan_.request.on_evaluation(line);
    return best;
  }

  void keep_details(const EvaluationResult& result) {
    details_ = plan_.task->details(result, plan_.data.labels);
    if (details_.json.empty() || !plan_.writes()) return;
    try {
      write_file_atomically(plan_.directory.evaluation_path(), details_.json + "\n");
    } catch (const UserError& error) {  // a full disk: training goes on
      warn("{}", error.what());
    }
  }

  // Many short epochs are not a line each: `tells` those that must be.
  void end_epoch(LogSink& log, const StepPlace& place, bool best, bool tells) {
    const Ledger::Totals totals = run_.ledger.totals();
    const Ledger::Totals epoch = totals - log_.epoch_start();
    const EpochRow row = log_.end_epoch(place, totals);
    if (tells || seconds_since(epoch_told_) >= 1) {
      log.clear_progress();
      say("{}", epoch_line(row, run_.epochs, epoch, plan_.job.training.best_by, best));
      line_told_ = epoch_told_ = now();
    }
    watch_.end_epoch(row, epoch);
    log_.begin_epoch();
  }

  // Begins to save the run as it is after this step.
  void save(SaveMode mode) {
    Ledger::Hold hold(run_.ledger, Phase::checkpoint);
    const int64_t start = now();
    settle_save();
    if (saved_step_ == run_.state.step) return;  // an interrupt right after it
    last_save_ = now();
    run_.state.elapsed_seconds = run_.elapsed();
    run_.state.guard.healthy = guard_.healthy();
    if (const LossScale* scale = resources_.engine->loss_scale()) run_.state.loss_scale = *scale;
    resources_.metrics->sync();
    watch_.close_stretch();  // before the checkpoint: what comes after it is written again by a resumed run
    watch_.sync();
    saver_.begin(resources_.engine->parameters(), run_.state, mode);
    if (const std::string note = saver_.take_note(); !note.empty()) warn("{}", note);
    save_exposed_ = agreed_seconds_since(start);
    log_.sample_memory();
    if (mode == SaveMode::at_once) settle_save();
  }

  // Waits for the save in flight, if there is one, and tells what came of it.
  void settle_save() {
    if (!saver_.in_flight()) return;
    Ledger::Hold hold(run_.ledger, Phase::checkpoint);
    const SavedCheckpoint saved = saver_.take();
    run_.summary.checkpoint_write_seconds += saved.write_seconds;
    const double hidden = plan_.processes().broadcast(saved.in_background ? saved.write_seconds : 0);
    if (run_.time_box) run_.time_box->save_took(save_exposed_ + hidden, save_exposed_);
    save_failed_ = !plan_.processes().broadcast(saved.result.ok());
    if (save_failed_) {
      warn("{}", saved.result.problem);
      best_.could_not_save(saved.step);
      return;
    }
    saved_step_ = saved.step;
    ++run_.summary.checkpoints_saved;
    best_.saved(saved.step);
    if (!saved.prune_problem.empty()) warn("{}", saved.prune_problem);
  }

  int64_t now() const { return plan_.clock().nanoseconds(); }
  double seconds_since(int64_t start) const { return plan_.clock().seconds_since(start); }

  // What a decision reads of clocks and signals is the same in all processes.
  double agreed_seconds_since(int64_t start) const { return plan_.processes().broadcast(seconds_since(start)); }
  double elapsed() { return plan_.processes().broadcast(run_.elapsed()); }
  bool interrupt_requested() const { return plan_.processes().broadcast(Runtime::current().cancelled()); }

  static constexpr int64_t kStepsBeforeExpecting = 5, kLoggingSteps = 10;

  TrainingSetup setup_;
  const RunPlan& plan_ = setup_.plan();
  RunState& run_ = setup_.run;
  RunResources& resources_ = setup_.resources;
  RunObserver* const observer_ = plan_.request.observer;
  DivergenceGuard guard_;
  RunWatch watch_;
  BestModel best_;
  StepLog log_;
  RankWatch ranks_;
  CheckpointSaver saver_;
  int64_t saved_step_ = -1;         // of the last checkpoint that this process saved
  double save_exposed_ = 0;         // seconds that the steps waited for the last one
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
  try {
    if (request.dry_run) {
      const TrainingSetup setup(std::move(job), request);
      return {.run_path = setup.plan().directory.path(), .summary = {.ended = "dry run"}};
    }
    Trainer trainer(std::move(job), request);
    if (request.before_first_step) request.before_first_step();
    return trainer.run();
  } catch (const std::exception& error) {
    // The others wait for this rank, or will.
    if (request.processes != nullptr && request.processes->communicator() != nullptr)
      request.processes->communicator()->fail(error.what());
    throw;
  }
}

}  // namespace brisk
