#include "train/run/setup.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/machine/isa.h"
#include "base/machine/machine.h"
#include "base/metrics.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "base/threads.h"
#include "checkpoint/fine_tuned.h"
#include "checkpoint/run_files.h"
#include "checkpoint/warm_start.h"
#include "infer/device_choice.h"
#include "infer/model_source.h"
#include "job/job_options.h"
#include "ops/peak/peak.h"
#include "report/read/run_record.h"
#include "train/engine/tune_micro_batch.h"
#include "train/run/describe_run.h"
#include "train/run/engine_plan.h"
#include "train/run/plan_run_length.h"
#include "train/run/resource_checks.h"
#include "train/run/resume_check.h"

namespace brisk {

namespace {

// How long a run is, as its job says it.
std::string length_text(const TrainingOptions& training) {
  if (!training.stop.empty()) return training.stop;
  if (training.max_steps > 0) return fmt::format("{} steps", training.max_steps);
  return fmt::format("{} epoch{}", training.num_epochs, training.num_epochs == 1 ? "" : "s");
}

class Starter {
 public:
  explicit Starter(TrainingSetup& setup) : setup_(setup) {}

  void start() {
    try {
      throw_if_cancelled();
      prepare();
      throw_if_cancelled();
      build_engine();
      throw_if_cancelled();
      restore();
    } catch (...) {
      setup_.directory.abandon();
      throw;
    }
    set_loader_options();
    if (setup_.request.dry_run) {
      describe_run(setup_);
      setup_.directory.abandon();
      return;
    }
    write_run_files();
    describe_run(setup_);
  }

 private:
  // By its own name, so that a resumed run finds the job it had.
  void resolve_best_by() {
    const Metrics metrics = setup_.task->metrics();
    std::string& best_by = setup_.job.training.best_by;
    const Metric* metric = metrics.find(best_by);
    if (metric == nullptr) {
      user_error("training.best_by is \"{}\", which an evaluation of task {} does not have; it has {}", best_by,
                 setup_.job.task, metrics.names());
    }
    best_by = metric->name;
  }

  void prepare() {
    resolve_best_by();
    if (setup_.request.overwrite) {
      refuse_to_replace(setup_.job.model.from, "model.from");
      refuse_to_replace(setup_.job.training.teacher, "training.teacher");
    }
    // A wrong one is refused before the data is read. A run may go on without what another device rounded to.
    place_ = training_device(*setup_.task, setup_.job);
    if (!setup_.request.resume) check_precision(setup_.job.training.precision, *place_.device);
    check_master_weights(setup_.job.training.master_weights, setup_.job.training.precision, *place_.device);
    if (setup_.job.training.threads > available_cores()) {
      warn("training.threads = {} on {} cores: threads that share a core wait for each other; {} would be faster",
           setup_.job.training.threads, available_cores(), available_cores());
    }
    checkpoint_path_ = setup_.request.resume ? latest_checkpoint(setup_.directory.path()) : std::nullopt;
    if (checkpoint_path_ && !has_optimizer_state(*checkpoint_path_) && saved_state().step == 0) {
      user_error(
          "{}: an imported model, so there is no training to resume; train from it with \"model\": {{\"from\": "
          "{}}} in a job and another --output",
          setup_.directory.path(), fmt::format("\"{}\"", setup_.directory.path()));
    }
    if (setup_.request.resume && setup_.directory.has_run()) {
      const std::string saved = read_file(setup_.directory.job_path(), file_kind::job);
      // --data need not be said again.
      if (setup_.job.data.train.empty())
        setup_.job.data.train = job_from_json_text(saved, setup_.directory.job_path()).data.train;
      const Job saved_job = job_from_json_text(saved, setup_.directory.job_path());
      setup_.job = with_recalled(std::move(setup_.job), saved_job);
      check_same_job(saved, setup_.directory.job_path(), setup_.job);
      other_length_ = length_text(saved_job.training) != length_text(setup_.job.training);
    }
    if (checkpoint_path_) {
      const FileChecksums files = saved_state().run_files;
      for (const auto& [name, checksum] : files)
        check_run_file(setup_.directory.path(), name, files, "copy it back from where it was saved");
    }
    const bool own_tokenizer = setup_.request.resume && file_exists(setup_.directory.tokenizer_path());
    DataRequest request;
    if (own_tokenizer) {
      request.run = setup_.directory.path();
    } else if (!setup_.job.model.from.empty()) {
      const ModelSource source = open_model_source(setup_.job.model.from);
      if (setup_.job.data.tokenizer.empty()) request.model_tokenizer = source.tokenizer();
      request.model_labels = source.labels;
    }
    setup_.data = setup_.task->prepare(setup_.job, std::move(request));
    setup_.job = with_found(std::move(setup_.job), setup_.data.found);
    for (const std::string& note : setup_.data.notes) say("{}", note);
    for (const std::string& warning : setup_.data.warnings) warn("{}", warning);
    if (setup_.data.train->empty()) user_error("{}: no training sequences in it", setup_.job.data.train.front().path);
    if (checkpoint_path_) {
      const std::string before = saved_state().job_fingerprint;
      if (!before.empty() && before != setup_.data.fingerprint) {
        user_error(
            "{}: the text in data.train or data.validation is not what the run was started with; resuming would change "
            "the loss curve: put it back, or start a new run with another --output",
            setup_.directory.path());
      }
    }
  }

  // Of the checkpoint to resume from; where it cannot be read, the message says which one to go on with instead.
  CheckpointState saved_state() const {
    try {
      return read_checkpoint_state(*checkpoint_path_);
    } catch (const UserError& error) {
      const std::vector<CheckpointPath> places = list_checkpoints(setup_.directory.path());
      if (places.size() < 2) throw;
      const CheckpointPath& before = places[places.size() - 2];
      user_error("{}\nremove {} and resume again to continue from step {} ({})", error.what(), *checkpoint_path_,
                 before.step, before.path);
    }
  }

  void build_engine() {
    const TrainingOptions& training = setup_.job.training;
    const int64_t sequences = training.batch_size * training.gradient_accumulation_steps;
    std::vector<LengthFigures> lengths;
    for (int set = 0; set < setup_.data.train->sets(); ++set) {
      LengthFigures& figures = lengths.emplace_back(length_figures(*setup_.data.train, setup_.data.sources, set));
      figures.longest = std::max<int64_t>({1, figures.longest, setup_.data.validation->longest(set)});
    }
    const int64_t longest = lengths[0].longest;
    if (!place_.reason.empty()) say("device: {}", place_.reason);
    Device& device = *place_.device;
    const int64_t asked = training.micro_batch_tokens;
    if (asked > 0 && asked < longest) {
      user_error(
          "training.micro_batch_tokens {} is less than the longest sequence, {}: raise it, or lower "
          "training.max_length",
          asked, longest);
    }
    const std::optional<TunedSettings> recalled = recalled_settings();
    if (recalled) check_settings(*recalled, device, longest);
    const EnginePlan plan = plan_engine(*setup_.task, setup_.job, device, lengths, recalled ? &*recalled : nullptr);
    EngineOptions options = plan.options;
    setup_.micro_batch_tokens = options.capacity.rows;
    setup_.memory = refuse_what_cannot_fit(options);  // before anything is measured: that takes memory too
    ProcessGroup& processes = setup_.processes();
    setup_.tuned = recalled ? TunedSettings{options.compute_type, recalled->micro_batch_tokens, isa_of(device),
                                            thread_pool().size(), options.products}
                            : tune_settings(options, *plan.precision);
    setup_.tuned.micro_batch_tokens = processes.broadcast(setup_.tuned.micro_batch_tokens);
    setup_.tuned.compute_type = processes.broadcast(setup_.tuned.compute_type);
    setup_.tuned.products = processes.broadcast(setup_.tuned.products);
    setup_.micro_batch_tokens = setup_.tuned.micro_batch_tokens;
    options.capacity = options.layout.capacity(setup_.micro_batch_tokens, longest);
    options.compute_type = setup_.tuned.compute_type;
    options.products = setup_.tuned.products;
    options.label_smoothing = training.label_smoothing;
    if (!training.teacher.empty())
      options.distillation = {training.distillation_weight, training.distillation_temperature};
    options.adamw = {training.beta1, training.beta2, training.adam_epsilon, training.weight_decay};
    options.max_grad_norm = training.max_grad_norm;
    options.seed = static_cast<uint64_t>(training.seed);

    // By the CPU: a GPU would wait for longer than it would compute.
    if (!device.is_cuda()) {
      for (const std::string& line :
           setup_.task->compute_ahead(setup_.job, options.compute_type, checkpoint_path_.value_or(""), processes)) {
        say("{}", line);
      }
      options.model = setup_.task->model_config(setup_.job);
    }
    // Of what is left to compute; a resumed run goes on with what was measured.
    if (training.measure_micro_batch && training.micro_batch_tokens == 0 && !checkpoint_path_) {
      setup_.micro_batch_tokens = processes.broadcast(fastest_micro_batch(options));
      setup_.tuned.micro_batch_tokens = setup_.micro_batch_tokens;
      options.capacity = options.layout.capacity(setup_.micro_batch_tokens, longest);
    }
    setup_.memory = refuse_what_cannot_fit(options);
    setup_.memory.copy_bytes = processes.broadcast(room_for_copy(setup_.memory, device, memory_available()));
    // Before the engine takes its memory: a GPU's peak is measured on large matrices.
    const bool fast_bf16 = device.is_cuda() || has_bf16_instructions(active_isa());
    const Arithmetic arithmetic = arithmetic_of(fast_bf16 ? options.compute_type : DType::f32, options.products);
    setup_.peak =
        device.is_cuda() ? std::make_unique<PeakMeter>(device, arithmetic) : std::make_unique<PeakMeter>(arithmetic);
    setup_.gpu = watch_gpu(device);
    device.forget_peak();  // what the measurement took is free again
    if (device.is_cuda()) {
      setup_.memory_explanation.emplace([options] {
        const Device& gpu = *options.device;
        return explain_memory(options, memory_for_engine(gpu) + gpu.memory().allocated);
      });
    }
    options.processes = &processes;
    setup_.engine = std::make_unique<Engine>(options);

    setup_.steps_per_epoch = divide_up(setup_.data.sequences_per_epoch, sequences);
    setup_.costs = model_costs(options.model, row_means(*setup_.data.train, options.layout));
    for (const ComponentCost& cost : setup_.costs) setup_.flop_per_token += cost.flop_per_token;
    constexpr int kPeakSamples = 10;  // the first figures are told before the run's own samples; a few ms
    for (int i = 0; i < kPeakSamples; ++i) setup_.peak->sample();
    set_length(setup_);
    if (!setup_.request.trial) refuse_full_disk(setup_);
  }

  // Of the run that is resumed.
  std::optional<TunedSettings> recalled_settings() const {
    if (!checkpoint_path_) return std::nullopt;
    return tuned_settings_from_json(saved_state().tuned_settings_json, *checkpoint_path_);
  }

  static std::string isa_of(const Device& device) {
    return device.is_cuda() ? "cuda" : std::string(isa_name(active_isa()));
  }

  // Of the run that is resumed.
  void check_settings(const TunedSettings& tuned, const Device& device, int64_t longest) const {
    const std::string isa = isa_of(device);
    const int64_t threads = thread_pool().size();
    if (tuned.micro_batch_tokens < longest) {
      user_error(
          "{}: its micro_batch_tokens are {}, less than the longest sequence, {}; the checkpoint is damaged: remove "
          "it to resume from the one before",
          *checkpoint_path_, tuned.micro_batch_tokens, longest);
    }
    if (!tuned.isa.empty() && (tuned.isa != isa || tuned.threads != threads)) {
      warn("resuming on {} with {} instead of {} with {}: results will agree only up to rounding", isa,
           plural(threads, "thread"), tuned.isa, tuned.threads);
    }
    if (tuned.compute_type == DType::f16 && !device.is_cuda()) {
      user_error("{}: the run uses fp16, which needs a GPU; resume it on one (\"device\": \"cuda\")",
                 setup_.directory.path());
    }
  }

  TunedSettings tune_settings(const EngineOptions& engine_options, const PrecisionChoice& precision) const {
    if (precision.costs) {
      warn("{}", precision.reason);
    } else {
      say("precision: {}", precision.reason);
    }
    return {precision.compute_type, setup_.micro_batch_tokens, isa_of(*engine_options.device), thread_pool().size(),
            precision.products};
  }

  int64_t fastest_micro_batch(const EngineOptions& options) {
    const LoaderOptions loader_options{
        .sequences_per_step = setup_.job.training.batch_size * setup_.job.training.gradient_accumulation_steps,
        .seed = static_cast<uint64_t>(setup_.job.training.seed)};
    const MicroBatchChoice choice = measure_micro_batch(options, setup_.data.train, loader_options, fits_in_memory);
    say("micro-batch: {}", choice.reason);
    return choice.tokens;
  }

  void restore() {
    if (checkpoint_path_) {
      setup_.state = load_checkpoint(*checkpoint_path_, setup_.engine->parameters());
      if (setup_.state.seed != static_cast<uint64_t>(setup_.job.training.seed)) {
        user_error("{}/{}: seed is {}, expected {} (training.seed): it is of another run, or damaged",
                   *checkpoint_path_, kStateFile, setup_.state.seed, setup_.job.training.seed);
      }
      load_frozen(setup_.directory.path(), setup_.engine->parameters());
      setup_.engine->parameters_changed();
      setup_.recall_loss_scale();
      say("resuming {} after step {}", setup_.directory.path(), setup_.state.step);
      setup_.elapsed_before = setup_.state.elapsed_seconds;
      if (setup_.time_box) setup_.time_box->go_back_to(setup_.state.progress);
      if (other_length_) go_on_for_longer();
    } else {
      setup_.begin();
      if (setup_.request.resume)
        say("{} holds no checkpoint yet: starting from the beginning", setup_.directory.path());
    }
    setup_.state.tuned_settings_json = tuned_settings_to_json(setup_.tuned);
    setup_.state.job_fingerprint = setup_.data.fingerprint;
    if (!setup_.request.resume || setup_.request.dry_run) return;
    setup_.directory.cut_metrics(setup_.state.step);
    recall_metrics(setup_.directory.metrics_path(), setup_.task->metrics(), setup_.state.best_step, setup_.summary);
    recall_elapsed();
  }

  // The clock of the run goes on where its files stand, the time in which the last process saved and ended included.
  void recall_elapsed() {
    double& elapsed = setup_.elapsed_before;
    elapsed = std::fmax(elapsed, read_run_figures(setup_.directory.path()).totals.seconds);
    if (setup_.summary.last_step) elapsed = std::fmax(elapsed, setup_.summary.last_step->seconds);
    if (setup_.summary.last_evaluation) elapsed = std::fmax(elapsed, setup_.summary.last_evaluation->seconds);
  }

  // The job gives the run another length than it had. Its schedule is that of a run which is as long from the start.
  void go_on_for_longer() {
    if (setup_.time_box) {
      setup_.state.progress = std::min(1.0, setup_.elapsed_before / setup_.time_box->seconds());
      setup_.time_box->go_back_to(setup_.state.progress);
      say("the run is {} long now, of which {} are over", length_text(setup_.job.training),
          format_duration(setup_.elapsed_before));
    } else if (setup_.state.step < setup_.total_steps) {
      say("the run is {} long now, {} steps: from step {} on, the learning rate is what it would be if it had been that "
          "long from the beginning, {:.3g} of its peak",
          length_text(setup_.job.training), setup_.total_steps, setup_.state.step + 1,
          setup_.schedule.at(setup_.state.step + 1) / setup_.schedule.rate);
    }
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

  void set_loader_options() {
    const EngineOptions& engine = setup_.engine->options();
    setup_.loader_options = {
        .sequences_per_step = setup_.job.training.batch_size * setup_.job.training.gradient_accumulation_steps,
        .micro_batch_rows = engine.layout.row_limits(engine.capacity),
        .seed = static_cast<uint64_t>(setup_.job.training.seed),
        .workers = static_cast<int>(setup_.job.training.num_workers),
        .start = setup_.state.cursor,
        .sources = setup_.data.sources};
  }

  // What the new run reads is not in the old one.
  void refuse_to_replace(const std::string& source, const char* key) const {
    const auto plain = [](const std::string& path) { return std::filesystem::weakly_canonical(path).string() + "/"; };
    if (source.empty() || !plain(source).starts_with(plain(setup_.directory.path()))) return;
    user_error("{}: {} is in the run that --overwrite would replace; choose another folder with --output", source, key);
  }

  void write_run_files() {
    if (setup_.request.overwrite && setup_.directory.has_run()) {
      say("{}: the run that was there is replaced", setup_.directory.path());
      setup_.directory.clear();
    }
    write_file_atomically(setup_.directory.job_path(), job_to_json_text(job_to_save()));  // first: it makes a run of it
    // Checkpoints know the bytes of these files: those that are there stay as they are.
    if (!checkpoint_path_ || !file_exists(setup_.directory.tokenizer_path()))
      save_tokenizer_folder(*setup_.data.tokenizer, setup_.directory.path());
    setup_.task->write_files(setup_.directory.path());
    setup_.state.run_files = checksums_of_run_files(setup_.directory.path());
    if (!checkpoint_path_ && !setup_.request.trial) save_frozen(setup_.directory.path(), setup_.engine->parameters());
    setup_.metrics = std::make_unique<MetricsLog>(setup_.directory.metrics_path());
    setup_.loader = std::make_unique<Loader>(setup_.data.train, setup_.loader_options);
    const DataCursor cursor = setup_.loader->cursor();
    const int64_t steps = cursor.epoch * setup_.loader->steps_per_epoch() + cursor.step;
    if (checkpoint_path_ && steps != setup_.state.step) {
      user_error("{}/{}: step is {}, but its cursor (epoch {}, step {}) is that of step {}: it is damaged",
                 *checkpoint_path_, kStateFile, setup_.state.step, cursor.epoch, cursor.step, steps);
    }
  }

  TrainingSetup& setup_;
  DeviceChoice place_;
  std::optional<std::string> checkpoint_path_;
  bool other_length_ = false;  // than the run that is resumed had
};

}  // namespace

void TrainingSetup::recall_loss_scale() {
  if (engine->loss_scale() != nullptr && state.loss_scale) *engine->loss_scale() = *state.loss_scale;
}

void TrainingSetup::begin() {
  state = {};
  state.seed = static_cast<uint64_t>(job.training.seed);
  if (job.model.from.empty()) {
    engine->initialise(state.seed);
    return;
  }
  initialise_what_may_be_missing(engine->parameters(), state.seed);
  const ModelSource source = open_model_source(job.model.from);
  if (source.start) {
    const bool student = job.model.num_layers < source.model.num_layers;
    const std::vector<int64_t> layers =
        student ? spread_layers(source.model.num_layers, job.model.num_layers) : std::vector<int64_t>();
    for (const std::string& line : source.start(engine->parameters(), layers, nonfinite_of(job))) say("{}", line);
  } else {
    source.load_into(engine->parameters(), nonfinite_of(job));
  }
  engine->parameters_changed();
}

std::vector<std::pair<std::string, std::string>> fingerprints_of(const TrainingSetup& setup) {
  const auto text = [](uint64_t fingerprint) { return fmt::format("{:016x}", fingerprint); };
  std::vector<std::pair<std::string, std::string>> all;
  if (setup.data.validation_fingerprint)
    all.emplace_back("validation_fingerprint", text(*setup.data.validation_fingerprint));
  all.emplace_back("tokenizer_fingerprint", text(setup.data.tokenizer->fingerprint()));
  if (setup.data.labels.count() > 0) {
    uint64_t sum = 0;  // whatever their order
    for (const std::string& name : setup.data.labels.names()) sum += hash_bytes(name);
    all.emplace_back("classes_fingerprint", text(sum));
  }
  return all;
}

TrainingSetup::TrainingSetup(Job job_to_run, const TrainRequest& what)
    : job(std::move(job_to_run)),
      request(what),
      directory(RunDirectory::open(job.output, what.resume      ? RunDirectory::Mode::resume
                                               : what.overwrite ? RunDirectory::Mode::overwrite
                                                                : RunDirectory::Mode::fresh)),
      task(what.task ? what.task : make_task(job.task)) {
  Starter(*this).start();
}

}  // namespace brisk
