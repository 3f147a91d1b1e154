#include "train/setup.h"

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/isa.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "base/threads.h"
#include "ops/peak.h"
#include "train/fine_tuned.h"
#include "train/micro_batch.h"
#include "train/model_config.h"
#include "train/model_source.h"
#include "train/tables.h"

namespace brisk {

namespace {

class Starter {
 public:
  explicit Starter(TrainingSetup& setup) : setup_(setup) {}

  void start() {
    try {
      prepare();
      build_engine();
      restore();
    } catch (...) {
      setup_.directory.abandon();
      throw;
    }
    write_run_files();
    describe();
  }

 private:
  void prepare() {
    Team::set_size(team_size_for(setup_.job.training.threads, "training.threads"));
    if (Team::instance().size() > available_cores()) {
      warn("training.threads = {} on {} cores: threads that share a core wait for each other; {} would be faster",
           Team::instance().size(), available_cores(), available_cores());
    }
    checkpoint_path_ = setup_.request.resume ? latest_checkpoint(setup_.directory.path()) : std::nullopt;
    if (checkpoint_path_ && !has_optimizer_state(*checkpoint_path_) && saved_state().step == 0) {
      user_error(
          "{}: an imported model, which has no training to go on with; train from it with \"model\": {{\"from\": "
          "\"{}\"}} in a job and another --output",
          setup_.directory.path(), setup_.directory.path());
    }
    if (setup_.request.resume && setup_.directory.has_run()) {
      const std::string saved = read_file(setup_.directory.job_path());
      // --data need not be said again.
      if (setup_.job.data.train.empty())
        setup_.job.data.train = job_from_json_text(saved, setup_.directory.job_path()).data.train;
      check_same_job(saved, setup_.directory.job_path(), setup_.job);
    }
    const bool own_tokenizer = setup_.request.resume && file_exists(setup_.directory.tokenizer_path());
    std::unique_ptr<Tokenizer> model_tokenizer;
    if (!own_tokenizer && !setup_.job.model.from.empty() && setup_.job.data.tokenizer.empty()) {
      model_tokenizer = open_model_source(setup_.job.model.from).tokenizer();
    }
    setup_.data =
        prepare_data(setup_.job, own_tokenizer ? setup_.directory.tokenizer_path() : "", std::move(model_tokenizer));
    for (const std::string& note : setup_.data.notes) say("{}", note);
    for (const std::string& warning : setup_.data.warnings) warn("{}", warning);
    if (setup_.data.train.chunks.empty())
      user_error("{}: no training sequences in it", setup_.job.data.train.front().path);
    if (checkpoint_path_) {
      const std::string before = saved_state().job_fingerprint;
      if (!before.empty() && before != setup_.data.fingerprint) {
        user_error(
            "{}: the text in data.train or data.validation is not what the run was started with; resuming would change "
            "the loss curve: put it back, or train anew with another --output",
            setup_.directory.path());
      }
    }
  }

  // Of the checkpoint to resume from; where it cannot be read, the message says which one to go on with instead.
  CheckpointState saved_state() const {
    try {
      return read_checkpoint_state(*checkpoint_path_);
    } catch (const UserError& error) {
      const std::vector<CheckpointPlace> places = list_checkpoints(setup_.directory.path());
      if (places.size() < 2) throw;
      const CheckpointPlace& before = places[places.size() - 2];
      user_error("{}\nremove {} and resume again to go on from step {} ({})", error.what(), *checkpoint_path_,
                 before.step, before.path);
    }
  }

  void build_engine() {
    const TrainingOptions& training = setup_.job.training;
    const int64_t sequences = training.batch_size * training.gradient_accumulation_steps;
    const int64_t longest =
        std::max<int64_t>({1, setup_.data.train.chunks.longest(), setup_.data.validation.chunks.longest()});
    EngineOptions options;
    options.model = training_config(setup_.job);
    const int64_t asked = training.micro_batch_tokens > 0 ? training.micro_batch_tokens : kMicroBatchTokens;
    if (training.micro_batch_tokens > 0 && asked < longest) {
      user_error(
          "training.micro_batch_tokens {} is less than the longest sequence, {}: raise it, or lower "
          "training.max_length",
          asked, longest);
    }
    setup_.micro_batch_tokens = std::max(longest, std::min(asked, sequences * longest));
    options.checkpoint_every = training.gradient_checkpointing;
    options.capacity = {setup_.micro_batch_tokens, setup_.micro_batch_tokens, longest};
    options.muon = muon_options(training);
    refuse_what_cannot_fit(options);  // before anything is measured: that takes memory too
    setup_.choices = make_choices(options);
    setup_.micro_batch_tokens = setup_.choices.micro_batch_tokens;
    options.capacity = {setup_.micro_batch_tokens, setup_.micro_batch_tokens, longest};
    options.compute_type = setup_.choices.compute_type;
    options.label_smoothing = training.label_smoothing;
    options.adamw = {training.beta1, training.beta2, training.adam_epsilon, training.weight_decay};
    options.max_grad_norm = training.max_grad_norm;
    options.seed = static_cast<uint64_t>(training.seed);

    refuse_what_cannot_fit(options);
    setup_.engine = std::make_unique<Engine>(options);

    const int64_t count = setup_.data.train.sequences_per_epoch();
    setup_.steps_per_epoch = (count + sequences - 1) / sequences;
    setup_.mean_length =
        setup_.data.train.chunks.squared_rows() / static_cast<double>(setup_.data.train.rows());  // as a token sees it
    setup_.flop_per_token = decoder_flop_per_token(options.model, setup_.mean_length);
    setup_.peak = std::make_unique<PeakMeter>(options.compute_type == DType::bf16 && has_bf16_instructions(active_isa())
                                                  ? Arithmetic::bf16
                                                  : Arithmetic::f32);
    for (int i = 0; i < 10; ++i) setup_.peak->sample();
    set_length();
    refuse_full_disk();
  }

  void set_length() {
    const TrainingOptions& training = setup_.job.training;
    const double tokens_per_step = setup_.data.train.rows_per_epoch() / static_cast<double>(setup_.steps_per_epoch);
    if (training.stop.empty()) {
      setup_.total_steps = training.max_steps > 0 ? training.max_steps : training.num_epochs * setup_.steps_per_epoch;
    } else {
      setup_.stop = parse_stop(training.stop, "training.stop");
      const double steps = setup_.stop->unit == Stop::Unit::epochs
                               ? setup_.stop->amount * static_cast<double>(setup_.steps_per_epoch)
                           : setup_.stop->unit == Stop::Unit::updates ? setup_.stop->amount
                           : setup_.stop->unit == Stop::Unit::tokens  ? setup_.stop->amount / tokens_per_step
                                                                      : set_time_box(tokens_per_step);
      setup_.total_steps = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps - 1e-9)));
    }
    setup_.epochs = (setup_.total_steps + setup_.steps_per_epoch - 1) / setup_.steps_per_epoch;
    setup_.schedule = schedule_of(training, setup_.total_steps);
  }

  // Returns the steps that should fit. All costs are guesses until they are measured.
  double set_time_box(double tokens_per_step) {
    constexpr double kUtilisation = 0.4, kForwardShare = 0.4, kDiskBytesPerSecond = 300e6;
    const TrainingOptions& training = setup_.job.training;
    TimeBoxOptions options;
    options.seconds = setup_.stop->amount;
    options.schedule = schedule_of(training, TimeBox::kScheduleLength);
    if (training.warmup_steps >= 0) {
      options.warmup_steps = training.warmup_steps;
      options.schedule.warmup_steps = 0;
    }
    options.step_seconds =
        tokens_per_step * setup_.flop_per_token * 1e-9 / (kUtilisation * std::max(1.0, setup_.peak->gflops()));
    options.save_seconds =
        static_cast<double>(checkpoint_bytes(setup_.memory.trained_parameters)) / kDiskBytesPerSecond;
    options.evaluation_steps = kForwardShare * static_cast<double>(setup_.data.validation.rows()) / tokens_per_step;
    options.evaluate_every = training.eval_steps > 0 ? training.eval_steps : setup_.steps_per_epoch;
    options.save_every = training.save_steps > 0 ? training.save_steps : setup_.steps_per_epoch;
    setup_.time_box.emplace(options, 0.0);
    return setup_.time_box->steps_left(setup_.ledger.totals().seconds());
  }

  Choices make_choices(const EngineOptions& engine_options) {
    const DecoderConfig& model = engine_options.model;
    const std::string isa(isa_name(active_isa()));
    const int64_t threads = Team::instance().size();
    if (checkpoint_path_) {
      Choices choices = choices_from_json(saved_state().choices_json, *checkpoint_path_);
      if (choices.micro_batch_tokens < engine_options.capacity.longest) {
        user_error(
            "{}: its micro_batch_tokens are {}, less than the longest sequence, {}; the checkpoint is damaged: remove "
            "it to resume from the one before",
            *checkpoint_path_, choices.micro_batch_tokens, engine_options.capacity.longest);
      }
      if (!choices.isa.empty() && (choices.isa != isa || choices.threads != threads)) {
        warn("the run was computed with {} and {} threads, now with {} and {}: its curve goes on, but not to the bit",
             choices.isa, choices.threads, isa, threads);
      }
      return {choices.compute_type, choices.micro_batch_tokens, isa, threads};
    }
    const PrecisionChoice precision = choose_precision(setup_.job.training.precision, model);
    if (precision.costs) {
      warn("{}", precision.reason);
    } else {
      say("precision: {}", precision.reason);
    }
    int64_t micro_batch_tokens = setup_.micro_batch_tokens;
    if (setup_.job.training.measure_micro_batch && setup_.job.training.micro_batch_tokens == 0) {
      micro_batch_tokens = fastest_micro_batch(engine_options, precision.compute_type);
    }
    return {precision.compute_type, micro_batch_tokens, isa, threads};
  }

  int64_t fastest_micro_batch(EngineOptions options, DType compute_type) {
    options.compute_type = compute_type;
    const LoaderOptions loader_options{
        .sequences_per_step = setup_.job.training.batch_size * setup_.job.training.gradient_accumulation_steps,
        .seed = static_cast<uint64_t>(setup_.job.training.seed)};
    const auto fits = [](const EngineOptions& sized) {
      return plan_memory(sized).total() + kProgram <= memory_available();
    };
    const MicroBatchChoice choice =
        measure_micro_batch(options, setup_.data.train_stream, setup_.data.train.chunks, loader_options, fits);
    say("micro-batch: {}", choice.reason);
    return choice.tokens;
  }

  static constexpr int64_t kProgram = int64_t{100} << 20;  // the program itself, tokenizer and loader included

  void refuse_what_cannot_fit(const EngineOptions& options) {
    setup_.memory = plan_memory(options);
    const int64_t available = memory_available();
    if (setup_.memory.total() + kProgram <= available) return;
    // The largest micro-batch that would fit, if any would.
    EngineOptions smaller = options;
    while (smaller.capacity.rows > smaller.capacity.longest) {
      smaller.capacity.rows = std::max(smaller.capacity.longest, smaller.capacity.rows / 2);
      if (plan_memory(smaller).total() + kProgram <= available) {
        user_error(
            "this job needs {} of memory and {} are available; \"training.micro_batch_tokens\": {} would fit ({})",
            format_bytes(static_cast<double>(setup_.memory.total())), format_bytes(static_cast<double>(available)),
            smaller.capacity.rows, format_bytes(static_cast<double>(plan_memory(smaller).total())));
      }
    }
    user_error(
        "this job needs {} of memory ({} for parameters, gradients and optimizer) and {} are available; use a smaller "
        "model.d_model, model.num_layers or model.vocab_size, or \"training.gradient_checkpointing\": 1",
        format_bytes(static_cast<double>(setup_.memory.total())),
        format_bytes(static_cast<double>(setup_.memory.state_bytes)), format_bytes(static_cast<double>(available)));
  }

  void refuse_full_disk() const {
    const int64_t every = setup_.job.training.save_steps > 0 ? setup_.job.training.save_steps : setup_.steps_per_epoch;
    const int64_t needed = checkpoints_bytes(setup_.memory.trained_parameters, setup_.job.training.save_total_limit,
                                             setup_.total_steps / every + 1);
    // What a run to be resumed has on the disk already is not needed again.
    const int64_t saved =
        std::ssize(list_checkpoints(setup_.directory.path())) * checkpoint_bytes(setup_.memory.trained_parameters);
    const int64_t there = disk_free_bytes(setup_.directory.path()) + saved;
    if (needed <= there) return;
    user_error(
        "{}: the checkpoints of this run need {} and the disk has {} free; free some, choose another --output, or "
        "lower "
        "training.save_total_limit (now {})",
        setup_.directory.path(), format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(there)),
        setup_.job.training.save_total_limit);
  }

  void restore() {
    if (checkpoint_path_) {
      setup_.state = load_checkpoint(*checkpoint_path_, setup_.engine->parameters());
      load_frozen(setup_.directory.path(), setup_.engine->parameters());
      setup_.engine->parameters_changed();
      say("resuming {} after step {}", setup_.directory.path(), setup_.state.step);
      setup_.elapsed_before = setup_.state.elapsed_seconds;
      if (setup_.time_box) setup_.time_box->go_back_to(setup_.state.progress);
    } else {
      setup_.begin();
      if (setup_.request.resume)
        say("{} holds no checkpoint yet: starting from the beginning", setup_.directory.path());
    }
    setup_.state.choices_json = choices_to_json(setup_.choices);
    setup_.state.job_fingerprint = setup_.data.fingerprint;
    if (!setup_.request.resume) return;
    setup_.directory.cut_metrics(setup_.state.step);
    recall_metrics(setup_.directory.metrics_path(), setup_.state.best_step, setup_.summary);
  }

  // With the places of the text from the root, so that the run can be resumed from any folder.
  Job job_to_save() const {
    Job job = setup_.job;
    const auto whole = [](const std::string& path) {
      return std::filesystem::absolute(path).lexically_normal().string();
    };
    for (DataSource& source : job.data.train) source.path = whole(source.path);
    for (std::string& path : job.data.validation) path = whole(path);
    return job;
  }

  void write_run_files() {
    write_file_atomically(setup_.directory.job_path(), job_to_json_text(job_to_save()));  // first: it makes a run of it
    save_tokenizer_folder(*setup_.data.tokenizer, setup_.directory.path());
    if (!checkpoint_path_) save_frozen(setup_.directory.path(), setup_.engine->parameters());
    setup_.metrics = std::make_unique<MetricsLog>(setup_.directory.metrics_path());
    const int64_t sequences = setup_.job.training.batch_size * setup_.job.training.gradient_accumulation_steps;
    setup_.loader_options = {.sequences_per_step = sequences,
                             .micro_batch_tokens = setup_.micro_batch_tokens,
                             .seed = static_cast<uint64_t>(setup_.job.training.seed),
                             .workers = static_cast<int>(setup_.job.training.num_workers),
                             .start = setup_.state.cursor,
                             .sources = setup_.data.train.sources};
    setup_.loader = std::make_unique<Loader>(setup_.data.train_stream, setup_.data.train.chunks, setup_.loader_options);
  }

  void describe() const {
    CorpusStatistics statistics = statistics_of(setup_.data, setup_.job.training.max_length);
    measure_packing(setup_.data.train.chunks, setup_.loader_options, statistics);
    say("{}", statistics_text(statistics));
    write_file_atomically(setup_.directory.statistics_path(), statistics_json_text(statistics));
    say("validation: {} sequences, {} tokens", setup_.data.validation.chunks.size(), setup_.data.validation.rows());
    say("\n{}", model_table(setup_.engine->options().model, setup_.mean_length));
    if (setup_.memory.trained_parameters < setup_.memory.parameters) {
      say("trained: {} of {} parameters, the rest is frozen",
          format_count(static_cast<double>(setup_.memory.trained_parameters)),
          format_count(static_cast<double>(setup_.memory.parameters)));
    }
    say("{}", memory_table(setup_.memory));
    const ModelOptions& model = setup_.job.model;
    const TrainingOptions& training = setup_.job.training;
    say("model: {}, {}, {} positions, {}, dropout {:g}", model.norm, model.activation, model.positions,
        model.tie_embeddings ? "tied embeddings" : "an output projection of its own", model.dropout);
    say("schedule: {}, {} of {} steps warm-up{}; weight decay {:g}, gradient norm {}, seed {}", training.lr_scheduler,
        setup_.schedule.warmup_steps, setup_.total_steps,
        training.lr_scheduler == "constant"
            ? ""
            : fmt::format(", to {:g}", setup_.schedule.final_ratio * training.learning_rate),
        training.weight_decay,
        training.max_grad_norm > 0 ? fmt::format("at most {:g}", training.max_grad_norm) : "not clipped",
        training.seed);
    say("{} steps{} of {} sequences, {} an epoch; {} threads, {}, {}, peak {:.0f} GFLOP/s in registers",
        setup_.total_steps, setup_.time_box ? " (a guess until the first ones are measured)" : "",
        setup_.loader_options.sequences_per_step, setup_.steps_per_epoch, Team::instance().size(),
        isa_name(active_isa()), dtype_name(setup_.choices.compute_type), setup_.peak->gflops());
  }

  TrainingSetup& setup_;
  std::optional<std::string> checkpoint_path_;
};

}  // namespace

void TrainingSetup::begin() {
  state = {};
  state.seed = static_cast<uint64_t>(job.training.seed);
  engine->initialise(state.seed);
  if (job.model.from.empty()) return;
  open_model_source(job.model.from).load_into(engine->parameters());
  engine->parameters_changed();
}

TrainingSetup::TrainingSetup(Job job_to_run, const TrainRequest& what)
    : job(std::move(job_to_run)),
      request(what),
      directory(RunDirectory::open(job.output, what.resume ? RunDirectory::Mode::resume : RunDirectory::Mode::fresh)) {
  Starter(*this).start();
}

}  // namespace brisk
