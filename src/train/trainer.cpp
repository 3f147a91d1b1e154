#include "train/trainer.h"

#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/isa.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "base/threads.h"
#include "data/loader.h"
#include "ops/peak.h"
#include "train/checkpoint.h"
#include "train/choices.h"
#include "train/generate.h"
#include "train/interrupt.h"
#include "train/model_config.h"
#include "train/prepare.h"
#include "train/run_directory.h"
#include "train/tables.h"

namespace brisk {

namespace {

class Trainer {
 public:
  Trainer(Job job, const TrainRequest& request)
      : job_(std::move(job)),
        request_(request),
        run_(RunDirectory::open(job_.output, request.resume ? RunDirectory::Mode::resume : RunDirectory::Mode::fresh)) {
  }

  TrainOutcome run() {
    try {
      prepare();
      build_engine();
      restore();
    } catch (...) {
      run_.abandon();
      throw;
    }
    write_run_files();
    describe();
    ledger_.enter(Phase::other);
    loop();
    return finish();
  }

 private:
  // --- before the first step
  // -------------------------------------------------------------------------------------------

  void prepare() {
    Team::set_size(job_.training.threads > 0 ? static_cast<int>(job_.training.threads) : available_cores());
    checkpoint_path_ = request_.resume ? latest_checkpoint(run_.path()) : std::nullopt;
    if (request_.resume && run_.has_run()) {
      const std::string saved = read_file(run_.job_path());
      // --data need not be said again.
      if (job_.data.train.empty()) job_.data.train = job_from_json_text(saved, run_.job_path()).data.train;
      check_same_job(saved, run_.job_path(), job_);
    }
    const bool own_tokenizer = request_.resume && file_exists(run_.tokenizer_path());
    data_ = prepare_data(job_, own_tokenizer ? run_.tokenizer_path() : "");
    for (const std::string& note : data_.notes) say("{}", note);
    for (const std::string& warning : data_.warnings) warn("{}", warning);
    if (data_.train.chunks.empty()) user_error("{}: no training sequences in it", job_.data.train.front());
    if (checkpoint_path_) {
      const std::string before = saved_state().job_fingerprint;
      if (!before.empty() && before != data_.fingerprint) {
        user_error(
            "{}: the text in data.train or data.validation is not what the run was started with; resuming would change "
            "the loss curve: put it back, or train anew with another --output",
            run_.path());
      }
    }
  }

  // Of the checkpoint to resume from; where it cannot be read, the message says which one to go on with instead.
  CheckpointState saved_state() const {
    try {
      return read_checkpoint_state(*checkpoint_path_);
    } catch (const UserError& error) {
      const std::vector<CheckpointPlace> places = list_checkpoints(run_.path());
      if (places.size() < 2) throw;
      const CheckpointPlace& before = places[places.size() - 2];
      user_error("{}\nremove {} and resume again to go on from step {} ({})", error.what(), *checkpoint_path_,
                 before.step, before.path);
    }
  }

  void build_engine() {
    const TrainingOptions& training = job_.training;
    const int64_t sequences = training.batch_size * training.gradient_accumulation_steps;
    int64_t longest = 1;
    for (const Chunk& chunk : data_.train.chunks) longest = std::max<int64_t>(longest, chunk.length);
    for (const Chunk& chunk : data_.validation.chunks) longest = std::max<int64_t>(longest, chunk.length);
    EngineOptions options;
    options.model = decoder_config(job_.model, training.max_length);
    const int64_t asked = training.micro_batch_tokens > 0 ? training.micro_batch_tokens : kMicroBatchTokens;
    if (training.micro_batch_tokens > 0 && asked < longest) {
      user_error(
          "training.micro_batch_tokens {} is less than the longest sequence, {}: raise it, or lower "
          "training.max_length",
          asked, longest);
    }
    micro_batch_tokens_ = std::max(longest, std::min(asked, sequences * longest));
    options.checkpoint_every = training.gradient_checkpointing;
    options.capacity = {micro_batch_tokens_, micro_batch_tokens_, longest};
    refuse_what_cannot_fit(options);  // before anything is measured: that takes memory too
    choices_ = make_choices(options.model);
    micro_batch_tokens_ = choices_.micro_batch_tokens;
    options.capacity = {micro_batch_tokens_, micro_batch_tokens_, longest};
    options.compute_type = choices_.compute_type;
    options.label_smoothing = training.label_smoothing;
    options.adamw = {training.beta1, training.beta2, training.adam_epsilon, training.weight_decay};
    options.max_grad_norm = training.max_grad_norm;
    options.seed = static_cast<uint64_t>(training.seed);

    refuse_what_cannot_fit(options);
    engine_ = std::make_unique<Engine>(options);

    const int64_t count = static_cast<int64_t>(data_.train.chunks.size());
    steps_per_epoch_ = (count + sequences - 1) / sequences;
    total_steps_ = training.max_steps > 0 ? training.max_steps : training.num_epochs * steps_per_epoch_;
    epochs_ = (total_steps_ + steps_per_epoch_ - 1) / steps_per_epoch_;
    schedule_ = schedule_of(training, total_steps_);
    double rows = 0, squares = 0;
    for (const Chunk& chunk : data_.train.chunks) {
      rows += chunk.length;
      squares += static_cast<double>(chunk.length) * chunk.length;
    }
    mean_length_ = squares / rows;  // as a token sees it
    flop_per_token_ = decoder_flop_per_token(options.model, mean_length_);
    peak_gflops_ = measured_peak_gflops(options.compute_type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32);
    refuse_full_disk();
  }

  Choices make_choices(const DecoderConfig& model) {
    const std::string isa(isa_name(active_isa()));
    const int64_t threads = Team::instance().size();
    if (checkpoint_path_) {
      Choices choices = choices_from_json(saved_state().choices_json, *checkpoint_path_);
      if (!choices.isa.empty() && (choices.isa != isa || choices.threads != threads)) {
        warn("the run was computed with {} and {} threads, now with {} and {}: its curve goes on, but not to the bit",
             choices.isa, choices.threads, isa, threads);
      }
      return {choices.compute_type, choices.micro_batch_tokens, isa, threads};
    }
    const PrecisionChoice precision = choose_precision(job_.training.precision, model, micro_batch_tokens_);
    if (precision.costs) {
      warn("{}", precision.reason);
    } else {
      say("precision: {}", precision.reason);
    }
    return {precision.compute_type, micro_batch_tokens_, isa, threads};
  }

  void refuse_what_cannot_fit(const EngineOptions& options) {
    memory_ = plan_memory(options);
    constexpr int64_t kProgram = int64_t{100} << 20;  // the program itself, tokenizer and loader included
    const int64_t available = memory_available();
    if (memory_.total() + kProgram <= available) return;
    // The largest micro-batch that would fit, if any would.
    EngineOptions smaller = options;
    while (smaller.capacity.rows > smaller.capacity.longest) {
      smaller.capacity.rows = std::max(smaller.capacity.longest, smaller.capacity.rows / 2);
      if (plan_memory(smaller).total() + kProgram <= available) {
        user_error(
            "this job needs {} of memory and {} are available; \"training.micro_batch_tokens\": {} would fit ({})",
            format_bytes(static_cast<double>(memory_.total())), format_bytes(static_cast<double>(available)),
            smaller.capacity.rows, format_bytes(static_cast<double>(plan_memory(smaller).total())));
      }
    }
    user_error(
        "this job needs {} of memory ({} for parameters, gradients and optimizer) and {} are available; use a smaller "
        "model.d_model, model.num_layers or model.vocab_size, or \"training.gradient_checkpointing\": 1",
        format_bytes(static_cast<double>(memory_.total())), format_bytes(static_cast<double>(memory_.state_bytes)),
        format_bytes(static_cast<double>(available)));
  }

  void refuse_full_disk() const {
    const int64_t every = job_.training.save_steps > 0 ? job_.training.save_steps : steps_per_epoch_;
    const int64_t needed =
        checkpoints_bytes(memory_.parameters, job_.training.save_total_limit, total_steps_ / every + 1);
    // What a run to be resumed has on the disk already is not needed again.
    const int64_t saved = std::ssize(list_checkpoints(run_.path())) * checkpoint_bytes(memory_.parameters);
    const int64_t there = disk_free_bytes(run_.path()) + saved;
    if (needed <= there) return;
    user_error(
        "{}: the checkpoints of this run need {} and the disk has {} free; free some, choose another --output, or "
        "lower "
        "training.save_total_limit (now {})",
        run_.path(), format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(there)),
        job_.training.save_total_limit);
  }

  void restore() {
    if (checkpoint_path_) {
      state_ = load_checkpoint(*checkpoint_path_, engine_->parameters());
      engine_->parameters_changed();
      say("resuming {} after step {}", run_.path(), state_.step);
    } else {
      engine_->initialise(static_cast<uint64_t>(job_.training.seed));
      state_.seed = static_cast<uint64_t>(job_.training.seed);
      if (request_.resume) say("{} holds no checkpoint yet: starting from the beginning", run_.path());
    }
    state_.choices_json = choices_to_json(choices_);
    state_.job_fingerprint = data_.fingerprint;
    if (!request_.resume) return;
    run_.cut_metrics(state_.step);
    recall_metrics(run_.metrics_path(), state_.best_step, summary_);
    stop_early_ = patience_is_over();
  }

  bool patience_is_over() const {
    const int64_t patience = job_.training.early_stopping_patience;
    return patience > 0 && state_.evaluations_without_improvement >= patience;
  }

  void write_run_files() {
    write_file_atomically(run_.job_path(), job_to_json_text(job_));  // first: it makes the folder a run
    data_.tokenizer->save(run_.tokenizer_path());
    metrics_ = std::make_unique<MetricsLog>(run_.metrics_path());
    const int64_t sequences = job_.training.batch_size * job_.training.gradient_accumulation_steps;
    loader_options_ = {.sequences_per_step = sequences,
                       .micro_batch_tokens = micro_batch_tokens_,
                       .seed = static_cast<uint64_t>(job_.training.seed),
                       .workers = static_cast<int>(job_.training.num_workers),
                       .start = state_.cursor};
    loader_ = std::make_unique<Loader>(data_.train_stream, data_.train.chunks, loader_options_);
  }

  void describe() const {
    CorpusStatistics statistics = corpus_statistics(data_.train, job_.training.max_length);
    measure_packing(data_.train.chunks, loader_options_, statistics);
    say("{}", statistics_text(statistics));
    say("validation: {} sequences, {} tokens", data_.validation.chunks.size(), data_.validation.rows());
    say("\n{}", model_table(engine_->options().model, mean_length_));
    say("{}", memory_table(memory_));
    say("{} steps of {} sequences, {} an epoch; {} threads, {}, {}, peak {:.0f} GFLOP/s in registers", total_steps_,
        loader_options_.sequences_per_step, steps_per_epoch_, Team::instance().size(), isa_name(active_isa()),
        dtype_name(choices_.compute_type), peak_gflops_);
  }

  // --- the loop
  // --------------------------------------------------------------------------------------------------------

  void loop() {
    InterruptGuard guard;
    ProgressBar bar;
    started_ = std::chrono::steady_clock::now();
    epoch_start_ = ledger_.totals();
    while (state_.step < total_steps_ && !stop_early_) {
      if (InterruptGuard::requested()) {
        interrupted_ = true;
        break;
      }
      StepBatch batch;
      {
        Ledger::Scope scope(ledger_, Phase::data_wait);
        batch = loader_->next();
      }
      const int64_t step = state_.step + 1;
      const double rate = schedule_.at(step);
      const auto before = std::chrono::steady_clock::now();
      const StepResult result = engine_->train_step(batch, step, rate, ledger_);
      if (!result.finite()) not_finite(step, result);
      Ledger::Scope scope(ledger_, Phase::logging);
      count(batch, result, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
      after_step(bar, batch, rate);
    }
    bar.clear();
    if (interrupted_) {
      save();
    }
  }

  void count(const StepBatch& batch, const StepResult& result, double seconds) {
    ++state_.step;
    state_.cursor = batch.next;
    state_.tokens_seen += result.tokens;
    auto& sums = state_.accumulators;  // since the last logged line; saved, so that a resumed curve has the same lines
    sums["loss_sum"] += result.loss_sum;
    sums["correct"] += static_cast<double>(result.correct);
    sums["tokens"] += static_cast<double>(result.tokens);
    sums["steps"] += 1;
    window_seconds_ += seconds;
    window_tokens_ += result.tokens;
    last_gradient_norm_ = result.gradient_norm;
    tokens_ += result.tokens;
    epoch_tokens_ += result.tokens;
    epoch_loss_ += result.loss_sum;
    ++steps_;
    ++epoch_steps_;
    sequences_ += batch.sequences;
    epoch_sequences_ += batch.sequences;
  }

  void after_step(ProgressBar& bar, const StepBatch& batch, double rate) {
    const TrainingOptions& training = job_.training;
    const bool last = state_.step == total_steps_;
    if (steps_ == 3) say_time_per_epoch();
    const Progress progress = make_progress(batch);
    if (state_.step % training.logging_steps == 0 || last) {
      log_step(batch, rate);
      bar.log(progress);
    } else {
      bar.update(progress);
    }
    const bool evaluates = training.eval_steps > 0 ? state_.step % training.eval_steps == 0 : batch.last_of_epoch;
    bool best = false;
    if ((evaluates || last) && !data_.validation.chunks.empty()) best = evaluate(bar, batch);
    if (batch.last_of_epoch || last) end_epoch(bar, batch);
    const bool saves = training.save_steps > 0 ? state_.step % training.save_steps == 0 : batch.last_of_epoch;
    if (saves || last || stop_early_ || (best && training.load_best_model_at_end)) {
      bar.clear();
      save();
    }
  }

  Progress make_progress(const StepBatch& batch) const {
    const double elapsed = seconds_since(started_);
    Progress progress;
    progress.epoch = batch.cursor.epoch + 1;
    progress.epochs = epochs_;
    progress.step = state_.step;
    progress.steps = total_steps_;
    const auto& sums = state_.accumulators;
    const auto tokens = sums.find("tokens");
    progress.loss =
        tokens != sums.end() && tokens->second > 0 ? sums.at("loss_sum") / tokens->second : last_logged_loss_;
    progress.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : 0;
    progress.elapsed_seconds = elapsed;
    progress.seconds_left =
        elapsed / static_cast<double>(std::max<int64_t>(1, steps_)) * static_cast<double>(total_steps_ - state_.step);
    return progress;
  }

  void say_time_per_epoch() {
    const double per_token = window_seconds_ / static_cast<double>(std::max<int64_t>(1, window_tokens_));
    say("time per epoch: about {} ({} tokens, measured over the first steps)",
        format_duration(per_token * static_cast<double>(data_.train.rows())),
        format_count(static_cast<double>(data_.train.rows())));
  }

  void log_step(const StepBatch& batch, double rate) {
    auto& sums = state_.accumulators;
    StepMetrics line;
    line.step = state_.step;
    line.epoch = batch.cursor.epoch + 1;
    line.tokens = state_.tokens_seen;
    const double tokens = std::max(1.0, sums["tokens"]);
    line.loss = sums["loss_sum"] / tokens;
    line.accuracy = sums["correct"] / tokens;
    line.learning_rate = rate;
    line.gradient_norm = last_gradient_norm_;
    line.tokens_per_second = window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : 0;
    line.step_ms = 1e3 * window_seconds_ / std::max(1.0, sums["steps"]);
    metrics_->append(line);
    summary_.last_step = line;
    last_logged_loss_ = line.loss;
    sums.clear();
    window_seconds_ = 0;
    window_tokens_ = 0;
  }

  bool evaluate(ProgressBar& bar, const StepBatch& batch) {
    const EvaluationResult result = engine_->evaluate(*data_.validation_stream, data_.validation.chunks, ledger_);
    EvaluationMetrics line{state_.step, batch.cursor.epoch + 1, result.loss, result.perplexity(), result.accuracy};
    metrics_->append(line);
    summary_.last_evaluation = line;
    const bool best = result.loss < state_.best_validation_loss;
    if (best) {
      state_.best_validation_loss = result.loss;
      state_.best_step = state_.step;
      state_.evaluations_without_improvement = 0;
      summary_.best_evaluation = line;
    } else {
      ++state_.evaluations_without_improvement;
      stop_early_ = patience_is_over();
    }
    bar.clear();
    say("step {}: validation loss {:.4f}, perplexity {:.2f}, accuracy {:.2f} %{}", state_.step, result.loss,
        result.perplexity(), 100 * result.accuracy, best ? ", the best so far" : "");
    if (stop_early_) {
      say("early stopping: no better validation loss in {} evaluations; the best was {:.4f} at step {}",
          state_.evaluations_without_improvement, state_.best_validation_loss, state_.best_step);
    }
    return best;
  }

  void end_epoch(ProgressBar& bar, const StepBatch& batch) {
    bar.clear();
    const Ledger::Totals now = ledger_.totals();
    const Ledger::Totals epoch = now - epoch_start_;
    const Speed speed{epoch.seconds(), epoch_tokens_, epoch_steps_,           epoch_sequences_,
                      flop_per_token_, peak_gflops_,  training_seconds(epoch)};
    say("\nepoch {}/{}: training loss {:.4f}{}", batch.cursor.epoch + 1, epochs_,
        epoch_loss_ / static_cast<double>(std::max<int64_t>(1, epoch_tokens_)),
        summary_.last_evaluation
            ? fmt::format(", validation loss {:.4f}, perplexity {:.2f}", summary_.last_evaluation->validation_loss,
                          summary_.last_evaluation->validation_perplexity)
            : std::string());
    say("{}", ledger_table(epoch, speed));
    say("{}\n", speed_line(speed));
    epoch_rows_.push_back({batch.cursor.epoch + 1, state_.step,
                           epoch_loss_ / static_cast<double>(std::max<int64_t>(1, epoch_tokens_)),
                           summary_.last_evaluation, speed});
    if (request_.sample_tokens > 0) {
      Ledger::Hold hold(ledger_, Phase::evaluation);
      Generator generator(engine_->decoder(), engine_->parameters(), *data_.tokenizer);
      GenerateOptions options;
      options.max_tokens = request_.sample_tokens;
      options.temperature = 0.8;
      options.top_k = 50;
      options.seed = static_cast<uint64_t>(state_.step);
      say("sample: {}\n", generator.generate(request_.sample_prompt, options).text);
    }
    epoch_start_ = ledger_.totals();
    epoch_tokens_ = epoch_steps_ = epoch_sequences_ = 0;
    epoch_loss_ = 0;
  }

  void save() {
    Ledger::Hold hold(ledger_, Phase::checkpoint);
    metrics_->sync();
    const SaveResult saved = save_checkpoint(run_.path(), engine_->parameters(), state_);
    if (!saved.ok()) {
      warn("{}", saved.problem);
      save_failed_ = true;
      return;
    }
    save_failed_ = false;
    const std::string problem = prune_checkpoints(run_.path(), job_.training.save_total_limit, state_.best_step);
    if (!problem.empty()) warn("{}", problem);
  }

  [[noreturn]] void not_finite(int64_t step, const StepResult& result) {
    const std::string tensor = engine_->first_not_finite();
    user_error(
        "step {}: {} is not finite{}; the parameters are still those before this step. Lower training.learning_rate "
        "(now {:g}), "
        "set training.max_grad_norm to 1 or less, or lengthen training.warmup_steps; the last checkpoint is {}",
        step, std::isfinite(result.loss_sum) ? "the gradient" : "the loss",
        tensor.empty() ? "" : fmt::format(" (first in {})", tensor), job_.training.learning_rate,
        latest_checkpoint(run_.path()).value_or("none yet"));
  }

  // --- the end
  // ---------------------------------------------------------------------------------------------------------

  TrainOutcome finish() {
    const bool finished = !interrupted_;
    if (finished && job_.training.load_best_model_at_end && state_.best_step >= 0 && state_.best_step != state_.step) {
      Ledger::Scope scope(ledger_, Phase::checkpoint);
      if (const auto best = best_checkpoint(run_.path())) {
        load_model(*best, engine_->parameters());
        engine_->parameters_changed();
        say("the best model, of step {} (validation loss {:.4f}), is loaded", state_.best_step,
            state_.best_validation_loss);
      }
    }
    if (!metrics_->problem().empty()) warn("{}", metrics_->problem());
    const Ledger::Totals totals = ledger_.totals();
    const Speed speed{totals.seconds(),        tokens_, steps_, sequences_, flop_per_token_, peak_gflops_,
                      training_seconds(totals)};
    summary_.parameters = memory_.parameters;
    summary_.model_bytes = memory_.parameters * size_of(DType::f32);
    for (int i = 0; i < kPhases; ++i) {
      const Phase phase = static_cast<Phase>(i);
      summary_.ledger.emplace_back(std::string(phase_name(phase)), totals.seconds(phase));
    }
    summary_.wall_seconds = totals.seconds();
    summary_.run_tokens_per_second = speed.tokens_per_second();
    summary_.gflops = speed.gflops();
    summary_.peak_gflops = peak_gflops_;
    summary_.utilisation = speed.utilisation();
    summary_.peak_memory_bytes = peak_memory_bytes();
    summary_.precision = choices_.compute_type == DType::bf16 ? "bf16" : "fp32";
    summary_.isa = std::string(isa_name(active_isa()));
    summary_.device = "cpu";
    summary_.threads = Team::instance().size();
    summary_.ended = interrupted_ ? "interrupted" : stop_early_ ? "early stopping" : "finished";
    std::string unsaved = save_failed_ ? "the last checkpoint" : "";
    try {
      write_summary(run_.summary_path(), summary_);
    } catch (const UserError& error) {
      warn("{}", error.what());
      if (unsaved.empty()) unsaved = "summary.json";
    }
    if (!epoch_rows_.empty()) say("{}", epoch_table(epoch_rows_));
    say("whole run:\n{}", ledger_table(totals, speed));
    say("{}", speed_line(speed));
    if (!unsaved.empty()) {
      user_error("{}: {}, but {} could not be saved; mend that and add --resume to go on from {}", run_.path(),
                 summary_.ended, unsaved, latest_checkpoint(run_.path()).value_or("the beginning"));
    }
    return {interrupted_, run_.path(), summary_};
  }

  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Job job_;
  TrainRequest request_;
  Ledger ledger_{Phase::start_up};
  RunDirectory run_;
  std::optional<std::string> checkpoint_path_;
  PreparedData data_;
  Choices choices_;
  MemoryPlan memory_;
  std::unique_ptr<Engine> engine_;
  CheckpointState state_;
  LoaderOptions loader_options_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<MetricsLog> metrics_;
  Schedule schedule_;
  RunSummary summary_;

  int64_t micro_batch_tokens_ = 0, steps_per_epoch_ = 0, total_steps_ = 0, epochs_ = 0;
  double mean_length_ = 0, flop_per_token_ = 0, peak_gflops_ = 0;
  std::chrono::steady_clock::time_point started_;
  Ledger::Totals epoch_start_;
  // Of this process: the whole, the epoch, and since the last logged line.
  int64_t tokens_ = 0, steps_ = 0, sequences_ = 0;
  int64_t epoch_tokens_ = 0, epoch_steps_ = 0, epoch_sequences_ = 0;
  double epoch_loss_ = 0;
  std::vector<EpochRow> epoch_rows_;
  int64_t window_tokens_ = 0;
  double window_seconds_ = 0, last_gradient_norm_ = 0, last_logged_loss_ = 0;
  bool stop_early_ = false, interrupted_ = false, save_failed_ = false;
};

}  // namespace

TrainOutcome train(Job job, const TrainRequest& request) { return Trainer(std::move(job), request).run(); }

}  // namespace brisk
