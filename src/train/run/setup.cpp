#include "train/run/setup.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/machine/isa.h"
#include "base/machine/machine.h"
#include "base/machine/process.h"
#include "base/metrics.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "base/threads.h"
#include "checkpoint/fine_tuned.h"
#include "checkpoint/run_files.h"
#include "checkpoint/store_checksum.h"
#include "checkpoint/warm_start.h"
#include "comm/communicator.h"
#include "comm/nccl.h"
#include "infer/architecture/architecture.h"
#include "infer/device_choice.h"
#include "infer/open/begin_weights.h"
#include "infer/open/label_file.h"
#include "infer/open/model_parts.h"
#include "infer/open/model_source.h"
#include "job/job_options.h"
#include "job/tables.h"
#include "ops/backend.h"
#include "ops/gemm/cuda/gemm_tuning_cuda.h"
#include "report/read/run_record.h"
#include "train/engine/tune_micro_batch.h"
#include "train/run/describe_run.h"
#include "train/run/plan/allocation.h"
#include "train/run/plan/engine_plan.h"
#include "train/run/plan/plan_run_length.h"
#include "train/run/plan/rank_checks.h"
#include "train/run/plan/rank_gpu.h"
#include "train/run/plan/resource_checks.h"
#include "train/run/plan/resume_check.h"

namespace brisk {

namespace {

// The GPUs of the other ranks of this machine, for the first rank, who tells of all.
std::vector<std::unique_ptr<GpuWatch>> watch_gpus_of_others(const Device& device, ProcessGroup& processes) {
  std::vector<std::unique_ptr<GpuWatch>> watches;
  if (processes.size() == 1) return watches;
  const std::string own = device.gpu() != nullptr ? device.gpu()->bus_id : "", machine = boot_id();
  const std::vector<std::string> machines = processes.communicator()->gather(machine);
  const std::vector<std::string> gpus = processes.communicator()->gather(own);
  for (size_t rank = 1; rank < gpus.size() && processes.is_first(); ++rank) {
    const bool is_here = machines[rank] == machine && !gpus[rank].empty();
    const bool is_shared = std::find(gpus.begin(), gpus.begin() + static_cast<ptrdiff_t>(rank), gpus[rank]) !=
                           gpus.begin() + static_cast<ptrdiff_t>(rank);
    std::unique_ptr<GpuSensor> sensor = is_here && !is_shared ? open_gpu_sensor(gpus[rank]) : nullptr;
    if (sensor) watches.push_back(std::make_unique<GpuWatch>(std::move(sensor)));
  }
  return watches;
}

// How long a run is, as its job says it.
std::string length_text(const TrainingOptions& training) {
  if (!training.stop.empty()) return training.stop;
  if (training.max_steps > 0) return fmt::format("{} steps", training.max_steps);
  return fmt::format("{} epoch{}", training.num_epochs, training.num_epochs == 1 ? "" : "s");
}

// The steps of a set-up, in their order. Each needs what those before it have found.
class Starter {
 public:
  Starter(RunPlan& plan, RunState& run, RunResources& resources) : plan_(plan), run_(run), resources_(resources) {
    plan_.task = task_;
  }

  void start() {
    try {
      throw_if_cancelled();
      resolve_best_by();
      refuse_to_replace_sources();
      check_ranks();
      check_allocation();
      choose_device();
      find_checkpoint();
      recall_job();
      prepare_data();
      throw_if_cancelled();
      choose_settings();
      compute_ahead();
      find_fastest_micro_batch();
      check_memory();
      measure_peak();
      make_engine();
      plan_length();
      throw_if_cancelled();
      restore();
      recall_record();
    } catch (...) {
      plan_.directory.abandon();
      throw;
    }
    set_loader_options();
    if (!plan_.request.dry_run) {
      write_run_files();
      open_loader();
    }
    describe_run(plan_, run_, resources_);
    if (plan_.request.dry_run) plan_.directory.abandon();
  }

 private:
  // By its own name, so that a resumed run finds the job it had.
  void resolve_best_by() {
    const Metrics metrics = task_->metrics();
    std::string& best_by = plan_.job.training.best_by;
    const Metric* metric = metrics.find(best_by);
    if (metric == nullptr) {
      std::vector<std::string> others;  // whose evaluations have it: perhaps that one is meant
      for (const TaskTraits& task : all_tasks()) {
        if (make_task(task.name)->metrics().find(best_by) != nullptr) others.emplace_back(task.name);
      }
      user_error(
          "training.best_by is \"{}\", which an evaluation of task {} does not have; it has {}{}", best_by,
          plan_.job.task, metrics.names(),
          others.empty() ? "" : fmt::format(" (if you mean it: \"task\": \"{}\")", fmt::join(others, "\" or \"")));
    }
    best_by = metric->name;
  }

  // What the new run reads is not in the old one.
  void refuse_to_replace_sources() const {
    if (!plan_.request.overwrite) return;
    const auto plain = [](const std::string& path) { return std::filesystem::weakly_canonical(path).string() + "/"; };
    for (const auto& [key, source] :
         {std::pair("model.from", plan_.job.model.from), std::pair("training.teacher", plan_.job.training.teacher)}) {
      if (source.empty() || !plain(source).starts_with(plain(plan_.directory.path()))) continue;
      user_error("{}: {} is in the run that --overwrite would replace; choose another folder with --output", source,
                 key);
    }
  }

  // A wrong one is refused before the data is read. A run may go on without what another device rounded to.
  void choose_device() {
    const TrainingOptions& training = plan_.job.training;
    ProcessGroup& processes = plan_.processes();
    Job job = plan_.job;
    // Where the task computes on the CPU alone, ranks need no GPU.
    if (processes.size() > 1 && task_->needs_cpu(job).empty())
      job.device = device_of_rank(job.device, cuda_gpus(), processes);
    place_ = training_device(*task_, job);
    if (place_.device->is_cuda()) BRISK_RUN_ON_GPU(allow_timing, training.logical_ranks == 0);
    if (processes.size() > 1 && place_.device->is_cuda()) {
      if (training.logical_ranks > 0) check_alike("its GPU", arithmetic_unit(*place_.device), processes);
      connect_gpus(*place_.device, processes);
      place_.reason += fmt::format("; {} ranks with a GPU each, {}", processes.size(), processes.gpus()->version());
    }
    if (plan_.job.device == "auto" && plan_.processes().size() == 1 && place_.device->is_cuda()) {
      const std::string idle = idle_gpus_text(cuda_gpus(), 0);
      if (!idle.empty() && !plan_.request.trial) say("device: {}", idle);
    }
    if (!plan_.request.resume) check_precision(training.precision, *place_.device);
    check_master_weights(training.master_weights, training.precision, *place_.device);
    if (training.threads > available_cores()) {
      warn("training.threads = {} on {} cores: threads that share a core wait for each other; {} would be faster",
           training.threads, available_cores(), available_cores());
    }
  }

  void find_checkpoint() {
    checkpoint_path_ = plan_.request.resume ? latest_checkpoint(plan_.directory.path()) : std::nullopt;
    if (checkpoint_path_) check_its_name();
    if (checkpoint_path_ && !has_optimizer_state(*checkpoint_path_) && saved_state().step == 0) {
      user_error(
          "{}: an imported model, so there is no training to resume; train from it with \"model\": {{\"from\": "
          "{}}} in a job and another --output",
          plan_.directory.path(), fmt::format("\"{}\"", plan_.directory.path()));
    }
    check_alike("the checkpoint that it goes on from (do all machines see the run directory?)",
                checkpoint_path_ ? read_checkpoint_state(*checkpoint_path_).model_checksum + *checkpoint_path_ : "none",
                plan_.processes());
  }

  // One that was renamed to a later step would stay the latest, whatever is saved from now on.
  void check_its_name() const {
    const CheckpointPath newest = list_checkpoints(plan_.directory.path()).back();
    const int64_t step = saved_state().step;
    if (newest.step != step) {
      user_error("{}: its name says step {}, but what was saved in it is step {}; rename it to {}", newest.path,
                 newest.step, step, fmt::format("step-{:08}", step));
    }
  }

  // Of the run that is resumed, with whose job this one must agree.
  void recall_job() {
    if (!plan_.request.resume || !plan_.directory.has_run()) return;
    const std::string path = plan_.directory.job_path(), saved = read_file(path, file_kind::job);
    const Job saved_job = job_from_json_text(saved, path);
    if (plan_.job.data.train.empty()) {  // --data need not be said again
      plan_.job.data.train = saved_job.data.train;
      plan_.job.data.train_target = saved_job.data.train_target;
      plan_.job.data.images = saved_job.data.images;
      plan_.job.data.texts = saved_job.data.texts;
      plan_.job.data.split = saved_job.data.split;
    }
    if (plan_.job.batch_is_of_a_device) plan_.job.training.batch_size = saved_job.training.batch_size;
    plan_.job = with_recalled(std::move(plan_.job), saved_job);
    check_same_job(saved, path, plan_.job);
    other_length_ = length_text(saved_job.training) != length_text(plan_.job.training);
  }

  void check_ranks() {
    ProcessGroup& processes = plan_.processes();
    check_parts(plan_.job, processes);
    if (processes.size() == 1) return;
    TrainingOptions& training = plan_.job.training;
    if (plan_.job.batch_is_of_a_device && !(plan_.request.resume && plan_.directory.has_run())) {
      say("training.batch_size = {} (per_device_train_batch_size {} times {} ranks); a resumed run keeps it on any number of "
          "ranks",
          processes.size() * training.batch_size, training.batch_size, processes.size());
      training.batch_size *= processes.size();
    }
    processes.communicator()->has_parts(training.logical_ranks);
    check_started_alike(plan_.job, plan_.request, processes);
  }

  // A run that ends with its allocation is refused before anything is read where there is none.
  void check_allocation() {
    if (!ends_with_allocation(plan_.job.training)) return;
    const double seconds = plan_.processes().broadcast(plan_.processes().is_first() ? seconds_left_to_train() : 0);
    say("training.stop auto: the Slurm allocation leaves {}", format_duration(seconds));
  }

  // The first rank tokenizes and fills the cache, and the others find it there.
  void prepare_data() {
    ProcessGroup& processes = plan_.processes();
    if (!processes.is_first()) processes.wait_for_all();
    prepare_own_data();
    if (processes.is_first()) processes.wait_for_all();
    check_alike("its data", plan_.data.fingerprint, processes);
  }

  void prepare_own_data() {
    if (checkpoint_path_) {
      const FileChecksums files = saved_state().run_files;
      for (const auto& [name, checksum] : files)
        check_run_file(plan_.directory.path(), name, files, "copy it back from where it was saved");
    }
    const bool goes_on = plan_.request.resume && (file_exists(plan_.directory.tokenizer_path()) ||
                                                  file_exists(plan_.directory.path() + kLabelFile));
    DataRequest request{.processes = &plan_.processes()};
    if (goes_on) {
      request.run = plan_.directory.path();
    } else if (!plan_.job.model.from.empty()) {
      const ModelSource source = open_model_source(plan_.job.model.from);
      if (plan_.job.data.tokenizer.empty()) {
        request.model_tokenizer = source.tokenizer();
        if (source.target_tokenizer) request.model_target_tokenizer = source.target_tokenizer();
      }
      request.model_labels = source.labels;
    } else if (!plan_.job.model.decoder_from.empty() && plan_.job.data.tokenizer.empty()) {
      const ModelSource source = open_model_source(plan_.job.model.decoder_from);
      request.model_tokenizer = source.target_tokenizer ? source.target_tokenizer() : source.tokenizer();
    }
    plan_.data = task_->prepare(plan_.job, std::move(request));
    // A run without one would be resumed on any other data, without a word.
    BRISK_CHECK(!plan_.data.fingerprint.empty(), "task {} sets no TaskData::fingerprint", plan_.job.task);
    plan_.job = with_found(std::move(plan_.job), plan_.data.found);
    if (!plan_.request.resume && plan_.job.model.from.empty()) {
      check_model_parts(architecture_of(plan_.job.model).parts(plan_.job.model), training_config(plan_.job));
    }
    for (const std::string& note : plan_.data.notes) say("{}", note);
    for (const std::string& warning : plan_.data.warnings) warn("{}", warning);
    for (const std::string& warning : plan_.data.warnings_of_all) {
      if (!plan_.request.trial) warn("{}", warning);
    }
    if (plan_.data.train->empty()) user_error("{}: no training sequences in it", plan_.job.data.train.front().path);
    if (checkpoint_path_) {
      if (saved_state().job_fingerprint != plan_.data.fingerprint) {
        user_error(
            "{}: the text in data.train or data.validation is not what the run was started with; resuming would change "
            "the loss curve: put it back, or start a new run with another --output",
            plan_.directory.path());
      }
    }
  }

  // Of the checkpoint to resume from; where it cannot be read, the message says which one to go on with instead.
  CheckpointState saved_state() const {
    try {
      return read_checkpoint_state(*checkpoint_path_);
    } catch (const UserError& error) {
      const std::vector<CheckpointPath> places = list_checkpoints(plan_.directory.path());
      if (places.size() < 2) throw;
      const CheckpointPath& before = places[places.size() - 2];
      user_error("{}\nremove {} and resume again to continue from step {} ({})", error.what(), *checkpoint_path_,
                 before.step, before.path);
    }
  }

  // Number formats and the micro-batch: those of the run that is resumed, or what suits the job on this device.
  void choose_settings() {
    const std::vector<LengthFigures> lengths =
        computed_lengths(plan_.job.training, plan_.data, task_->batch_layout(plan_.job), padding_);
    const TrainingOptions& training = plan_.job.training;
    const int64_t longest = lengths[0].longest, asked = training.micro_batch_tokens;
    if (!place_.reason.empty()) say("device: {}", place_.reason);
    if (asked > 0 && asked < longest && reads_images(plan_.job.model.type)) {
      user_error(
          "training.micro_batch_tokens {} is less than the rows of an image, {}: raise it, or use larger patches",
          asked, longest);
    }
    if (asked > 0 && asked < longest) {
      user_error(
          "training.micro_batch_tokens {} is less than the longest sequence, {}{}: raise it, or lower "
          "training.max_length",
          asked, longest, padding_.to == Padding::To::lengths ? " with its padding" : "");
    }
    Device& device = *place_.device;
    std::optional<TunedSettings> recalled;
    if (checkpoint_path_) recalled = recalled_settings(device, longest);
    const EnginePlan engine = plan_engine(*task_, plan_.job, device, lengths, recalled ? &*recalled : nullptr);
    options_ = engine.options;
    options_.parts = training.logical_ranks;
    options_.processes = &plan_.processes();
    refuse_what_cannot_fit(options_);  // before anything is measured: that takes memory too
    if (engine.precision && engine.precision->costs) warn("{}", engine.precision->reason);
    if (engine.precision && !engine.precision->costs) say("precision: {}", engine.precision->reason);
    TunedSettings& tuned = plan_.tuned;
    tuned = {options_.compute_type, recalled ? recalled->micro_batch_tokens : options_.capacity.rows, isa_of(device),
             thread_pool().size(), options_.products};
    set_micro_batch(tuned.micro_batch_tokens);
    options_.compute_type = tuned.compute_type = plan_.processes().broadcast(tuned.compute_type);
    options_.products = tuned.products = plan_.processes().broadcast(tuned.products);
    options_.label_smoothing = training.label_smoothing;
    if (!training.teacher.empty())
      options_.distillation = {training.distillation_weight, training.distillation_temperature};
    options_.adamw = {training.beta1, training.beta2, training.adam_epsilon, training.weight_decay};
    options_.max_grad_norm = training.max_grad_norm;
    options_.seed = static_cast<uint64_t>(training.seed);
  }

  void set_micro_batch(int64_t tokens) {
    plan_.tuned.micro_batch_tokens = plan_.processes().broadcast(tokens);
    options_.capacity = options_.layout.capacity(plan_.tuned.micro_batch_tokens, options_.capacity.longest);
  }

  void compute_ahead() {
    for (const std::string& line : task_->compute_ahead(plan_.job, options_.compute_type, checkpoint_path_.value_or(""),
                                                        *place_.device, plan_.processes())) {
      say("{}", line);
    }
    options_.model = task_->model_config(plan_.job);
  }

  // Of what is left to compute; a resumed run goes on with what was measured.
  void find_fastest_micro_batch() {
    const TrainingOptions& training = plan_.job.training;
    if (!training.measure_micro_batch || training.micro_batch_tokens != 0 || checkpoint_path_) return;
    const LoaderOptions loader_options{
        .sequences_per_step = sequences_per_step(), .seed = options_.seed, .padding = padding_};
    EngineOptions alone = options_;  // each process measures by itself
    alone.processes = nullptr;
    alone.parts = 1;
    const MicroBatchChoice choice = measure_micro_batch(
        alone, plan_.data.train, loader_options,
        [&](const EngineOptions& tried) { return fits_in_memory(tried, plan_.processes().of_machine()); });
    say("micro-batch: {}", choice.reason);
    set_micro_batch(choice.tokens);
  }

  void check_memory() {
    plan_.memory = refuse_what_cannot_fit(options_);
    plan_.processes().wait_for_all();  // whoever went on would take memory that the others look for
    MemoryPlan own = plan_.memory;     // each process copies, and writes, its share
    own.saved_bytes = divide_up(own.saved_bytes, plan_.processes().size());
    plan_.memory.copy_bytes = plan_.processes().broadcast(
        room_for_copy(own, *place_.device, memory_available() / plan_.processes().of_machine()));
  }

  // Before the engine takes its memory: a GPU's peak is measured on large matrices.
  void measure_peak() {
    Device& device = *place_.device;
    const bool fast_bf16 = device.is_cuda() || has_bf16_instructions(active_isa());
    const Arithmetic arithmetic = arithmetic_of(fast_bf16 ? options_.compute_type : DType::f32, options_.products);
    resources_.peak = device.is_cuda() ? PeakMeter(device, arithmetic) : PeakMeter(arithmetic);
    resources_.peak->count_processes(plan_.processes().size());
    resources_.gpu = watch_gpu(device);
    resources_.other_gpus = watch_gpus_of_others(device, plan_.processes());
    device.forget_peak();  // what the measurement took is free again
  }

  void make_engine() {
    if (place_.device->is_cuda()) {
      resources_.memory_explanation.emplace([options = options_] {
        const Device& gpu = *options.device;
        return explain_memory(options, memory_for_engine(gpu) + gpu.memory().allocated);
      });
    }
    resources_.engine.emplace(options_);
  }

  void plan_length() {
    plan_.steps_per_epoch = steps_of_epoch(plan_.data.sequences_per_epoch, order_options());
    plan_.costs = model_costs(options_.model, row_means(*plan_.data.train, options_.layout));
    for (const ComponentCost& cost : plan_.costs) plan_.flop_per_token += cost.flop_per_token;
    PeakMeter& peak = *resources_.peak;
    constexpr int kPeakSamples = 10;  // the first figures are told before the run's own samples; a few ms
    for (int i = 0; i < kPeakSamples; ++i) peak.sample();
    set_length(plan_, run_, peak);
    if (!plan_.request.trial) refuse_full_disk(plan_, run_, peak.gflops());
  }

  int64_t sequences_per_step() const {
    return plan_.job.training.batch_size * plan_.job.training.gradient_accumulation_steps;
  }

  // What decides which sequences a step takes.
  LoaderOptions order_options() const {
    const TrainingOptions& training = plan_.job.training;
    return {.sequences_per_step = sequences_per_step(),
            .seed = static_cast<uint64_t>(training.seed),
            .sources = plan_.data.sources,
            .droppable_sequences = training.drop_incomplete_accumulation
                                       ? training.batch_size * (training.gradient_accumulation_steps - 1)
                                       : 0};
  }

  static std::string isa_of(const Device& device) {
    return device.is_cuda() ? "cuda" : std::string(isa_name(active_isa()));
  }

  // Of the run that is resumed.
  TunedSettings recalled_settings(const Device& device, int64_t longest) const {
    TunedSettings tuned = tuned_settings_from_json(saved_state().tuned_settings_json, *checkpoint_path_);
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
                 plan_.directory.path());
    }
    return tuned;
  }

  void restore() {
    Engine& engine = *resources_.engine;
    if (checkpoint_path_) {
      run_.state = restore_run(*checkpoint_path_, engine);
      if (run_.state.seed != static_cast<uint64_t>(plan_.job.training.seed)) {
        user_error("{}/{}: seed is {}, expected {} (training.seed): it is of another run, or damaged",
                   *checkpoint_path_, kStateFile, run_.state.seed, plan_.job.training.seed);
      }
      load_frozen(plan_.directory.path(), engine.parameters());
      engine.parameters_changed();
      say("resuming {} after step {}", plan_.directory.path(), run_.state.step);
      run_.elapsed_before = run_.state.elapsed_seconds;
      fit_into_allocation();
      if (run_.time_box) run_.time_box->go_back_to(run_.state.progress);
      if (other_length_) go_on_for_longer();
    } else {
      run_.state = begin_run(plan_.job, engine);
      fit_into_allocation();
      if (plan_.request.resume) say("{} holds no checkpoint yet: starting from the beginning", plan_.directory.path());
    }
    if (plan_.processes().size() > 1)
      check_alike("the weights that it begins with",
                  fmt::format("{:016x}", checksum_of_parameters(engine.parameters())), plan_.processes());
    run_.state.tuned_settings_json = tuned_settings_to_json(plan_.tuned);
    run_.state.job_fingerprint = plan_.data.fingerprint;
  }

  // What the files of the resumed run say of its past; lines of steps that will be made again are gone.
  void recall_record() {
    if (!plan_.request.resume || plan_.request.dry_run) return;
    if (plan_.writes()) plan_.directory.cut_metrics(run_.state.step);
    plan_.processes().wait_for_all();
    recall_metrics(plan_.directory.metrics_path(), task_->metrics(), run_.state.best_step, run_.summary);
    // The clock goes on where the files stand, the time in which the last process saved and ended included.
    double& elapsed = run_.elapsed_before;
    elapsed = std::fmax(elapsed, read_run_figures(plan_.directory.path()).totals.seconds);
    if (run_.summary.last_step) elapsed = std::fmax(elapsed, run_.summary.last_step->seconds);
    if (run_.summary.last_evaluation) elapsed = std::fmax(elapsed, run_.summary.last_evaluation->seconds);
    fit_into_allocation();
  }

  // A box counts from the beginning of the run, an allocation from now on.
  void fit_into_allocation() {
    if (!run_.time_box || !ends_with_allocation(plan_.job.training)) return;
    const double elapsed = run_.elapsed(), left = plan_.processes().is_first() ? seconds_left_to_train() : 0;
    run_.time_box->set_seconds(plan_.processes().broadcast(elapsed + left));
  }

  // The job gives the run another length than it had. Its schedule is that of a run which is as long from the start.
  void go_on_for_longer() {
    if (run_.time_box) {
      run_.state.progress = std::min(1.0, run_.elapsed_before / run_.time_box->seconds());
      run_.time_box->go_back_to(run_.state.progress);
      say("the run is {} long now, of which {} are over",
          ends_with_allocation(plan_.job.training) ? format_duration(run_.time_box->seconds())
                                                   : length_text(plan_.job.training),
          format_duration(run_.elapsed_before));
    } else if (run_.state.step < run_.total_steps) {
      say("the run is {} long now, {} steps: from step {} on, the learning rate is what it would be if it had been that "
          "long from the beginning, {:.3g} of its peak",
          length_text(plan_.job.training), run_.total_steps, run_.state.step + 1,
          plan_.schedule.at(run_.state.step + 1) / plan_.schedule.rate);
    }
  }

  // With the places of the text from the root, so that the run can be resumed from any folder.
  Job job_to_save() const {
    Job job = plan_.job;
    const auto whole = [](const std::string& path) {
      return std::filesystem::absolute(path).lexically_normal().string();
    };
    for (DataSource& source : job.data.train) source.path = whole(source.path);
    for (std::vector<std::string>* paths :
         {&job.data.validation, &job.data.train_target, &job.data.validation_target}) {
      for (std::string& path : *paths) path = whole(path);
    }
    for (std::string* path : {&job.data.images, &job.data.texts, &job.data.split}) {
      if (!path->empty()) *path = whole(*path);
    }
    return job;
  }

  void set_loader_options() {
    const EngineOptions& engine = resources_.engine->options();
    LoaderOptions& loader = plan_.loader_options;
    loader = order_options();
    loader.micro_batch_rows = engine.layout.row_limits(engine.capacity);
    const int64_t workers = plan_.job.training.num_workers;
    // Images are decoded by threads of their own (ImageStore), as many as that.
    loader.workers = static_cast<int>(plan_.data.train->has_prefetch() ? std::min<int64_t>(1, workers) : workers);
    loader.start = run_.state.cursor;
    loader.padding = padding_;
    loader.share = share_of_step();
  }

  StepShare share_of_step() const {
    ProcessGroup& processes = plan_.processes();
    const int64_t parts = resources_.engine->options().parts_of_step(), own = parts / processes.size();
    return {.parts = parts, .first = processes.rank() * own, .count = own};
  }

  void write_run_files() {
    if (!plan_.writes()) return plan_.processes().wait_for_all();
    write_own_run_files();
    plan_.processes().wait_for_all();
  }

  void write_own_run_files() {
    if (plan_.request.overwrite && plan_.directory.has_run()) {
      say("{}: the run that was there is replaced", plan_.directory.path());
      plan_.directory.clear();
    }
    write_file_atomically(plan_.directory.job_path(), job_to_json_text(job_to_save()));  // first: it makes a run of it
    // Checkpoints know the bytes of these files: those that are there stay as they are.
    if (plan_.data.tokenizer && (!checkpoint_path_ || !file_exists(plan_.directory.tokenizer_path())))
      save_tokenizer_folder(*plan_.data.tokenizer, plan_.directory.path());
    task_->write_files(plan_.directory.path());
    run_.state.run_files = checksums_of_run_files(plan_.directory.path());
    if (!checkpoint_path_ && !plan_.request.trial) save_frozen(plan_.directory.path(), resources_.engine->parameters());
  }

  void open_loader() {
    resources_.metrics.emplace(plan_.writes() ? plan_.directory.metrics_path() : "");
    resources_.loader.emplace(plan_.data.train, plan_.loader_options);
    const DataCursor cursor = resources_.loader->cursor();
    const int64_t steps = cursor.epoch * resources_.loader->steps_per_epoch() + cursor.step;
    if (checkpoint_path_ && steps != run_.state.step) {
      user_error("{}/{}: step is {}, but its cursor (epoch {}, step {}) is that of step {}: it is damaged",
                 *checkpoint_path_, kStateFile, run_.state.step, cursor.epoch, cursor.step, steps);
    }
  }

  RunPlan& plan_;
  RunState& run_;
  RunResources& resources_;
  const std::shared_ptr<Task> task_ = plan_.request.task ? plan_.request.task : make_task(plan_.job);
  DeviceChoice place_;
  EngineOptions options_;
  Padding padding_;
  std::optional<std::string> checkpoint_path_;
  bool other_length_ = false;  // than the run that is resumed had
};

}  // namespace

namespace {

// The first rank opens it for all.
RunDirectory open_directory(const std::string& path, const TrainRequest& what) {
  ProcessGroup& processes = what.processes != nullptr ? *what.processes : single_process();
  if (!processes.is_first()) {
    processes.wait_for_all();
    return RunDirectory::open(path, RunDirectory::Mode::follow);
  }
  RunDirectory directory = RunDirectory::open(path, what.resume      ? RunDirectory::Mode::resume
                                                    : what.overwrite ? RunDirectory::Mode::overwrite
                                                                     : RunDirectory::Mode::fresh);
  processes.wait_for_all();
  return directory;
}

}  // namespace

RunPlan::RunPlan(Job job_to_run, const TrainRequest& what)
    : job(std::move(job_to_run)), request(what), directory(open_directory(job.output, what)) {}

TrainingSetup::TrainingSetup(Job job, const TrainRequest& request)
    : run(*request.clock), plan_(std::move(job), request) {
  Starter(plan_, run, resources).start();
}

CheckpointState begin_run(const Job& job, Engine& engine) {
  CheckpointState state;
  state.seed = static_cast<uint64_t>(job.training.seed);
  for (const std::string& line : begin_weights(job, engine.parameters())) say("{}", line);
  engine.parameters_changed();
  return state;
}

CheckpointState restore_run(const std::string& checkpoint, Engine& engine) {
  CheckpointState state =
      load_checkpoint(checkpoint, engine.parameters(), engine.own_range(), engine.options().process_group().is_first());
  if (engine.loss_scale() != nullptr && state.loss_scale) *engine.loss_scale() = *state.loss_scale;
  return state;
}

std::vector<std::pair<std::string, std::string>> fingerprints_of(const TaskData& data) {
  const auto text = [](uint64_t fingerprint) { return fmt::format("{:016x}", fingerprint); };
  std::vector<std::pair<std::string, std::string>> all;
  if (data.validation_fingerprint) all.emplace_back("validation_fingerprint", text(*data.validation_fingerprint));
  if (data.tokenizer) all.emplace_back("tokenizer_fingerprint", text(data.tokenizer->fingerprint()));
  if (data.labels.count() > 0) {
    uint64_t sum = 0;  // whatever their order
    for (const std::string& name : data.labels.names()) sum += hash_bytes(name);
    all.emplace_back("classes_fingerprint", text(sum));
  }
  return all;
}

}  // namespace brisk
