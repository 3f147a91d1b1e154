#include "doctor/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "doctor/measure/machine_readings.h"
#include "doctor/measure/measured_run.h"
#include "doctor/measure/scratch.h"
#include "doctor/plan/job_size.h"
#include "doctor/plan/known_models.h"
#include "doctor/plan/machine_file.h"
#include "doctor/plan/outlook.h"
#include "doctor/plan/rank_model.h"
#include "doctor/plan/scaling.h"
#include "doctor/plan/shape_for_time.h"
#include "doctor/plan/time_steps.h"
#include "job/tables.h"
#include "text/tokenizer.h"

namespace brisk {

namespace {

constexpr double kLongestUpdate = 6;  // seconds; of a model whose update takes longer, one with fewer layers is timed
constexpr double kVariationSeconds = 0.8;

std::string layers_text(const JobSize& size) {
  return fmt::format("{} {} wide", plural(size.layers, "layer"), size.width);
}

class JobPlanner {
 public:
  JobPlanner(const PlanOptions& options, const std::string& path, const Planning& planning, int64_t started)
      : options_(options), planning_(planning), started_(started) {
    plan_.path = path;
  }

  JobPlan plan(Job job) {
    plan_.name = job.name;
    tell("reading the job and its data");
    prepared_.emplace(std::move(job));
    plan_.job = prepared_->job();
    plan_.size = prepared_->size();
    plan_.notes = prepared_->warnings();
    plan_.memory_available = machine().memory_bytes;
    scratch_.emplace(run_directory_of(plan_.job));
    time_the_job();
    plan_.outlook = outlook(plan_.job, plan_.size, times_, basis_);
    if (times_ && has_ranks()) divide_among_ranks();
    if (planning_.other) {
      plan_.here = outlook_of(plan_.job, plan_.size, times_ ? &*times_ : nullptr, planning_.here.memory_bytes);
      plan_.here->basis = basis_;
    }
    plan_.times = times_;
    plan_.precision = planning_.other ? precision_on(*planning_.other, plan_.job.training.precision)
                      : times_        ? times_->precision
                                      : plan_.job.training.precision;
    if (has_ranks())
      plan_.notes.emplace_back("Variations are told for one process: plan without the ranks' file, or with --set.");
    if (options_.paths.size() > 1 || has_ranks()) return std::move(plan_);
    if (traits_of_task(plan_.job.task).has_labels && prepared_->has_tokenizer()) choose_models();
    ask_what_if();
    choose_shapes();
    return std::move(plan_);
  }

 private:
  const MachineRates& machine() const { return planning_.other ? *planning_.other : planning_.here; }
  bool has_ranks() const { return planning_.other && planning_.other->ranks && planning_.other->ranks->size > 1; }
  double left() const { return options_.seconds - kSystemClock.seconds_since(started_); }
  void tell(const std::string& what) const {
    say("[{}] {}", format_duration(kSystemClock.seconds_since(started_)), what);
  }
  std::string folder() { return fmt::format("{}/{}", scratch_->path(), ++folders_); }

  // What a job takes on the machine that is planned for, from times that were measured here.
  Outlook outlook(const Job& job, const JobSize& size, const std::optional<StepTimes>& times, std::string basis) const {
    std::optional<StepTimes> there = times;
    if (times && planning_.other) {
      there = scaled_to_machine(*times, size, planning_.here, *planning_.other,
                                precision_on(*planning_.other, job.training.precision));
      basis += ", then scaled by the measured rates of both machines";
    }
    Outlook outlook = outlook_of(job, size, there ? &*there : nullptr, machine().memory_bytes);
    outlook.basis = times ? basis : "not timed";
    return outlook;
  }

  // The job with new weights and fewer layers, where the whole cannot be timed; none where it is not what its speed
  // depends on.
  std::optional<Job> stand_in(int64_t layers) {
    Job job = plan_.job;
    if (!job.model.from.empty()) {
      if (job.training.lora_rank > 0 || job.training.train_layers > 0) return {};
      start_anew(job);
    }
    job.model.num_layers = layers;
    return job;
  }

  // With the same tokenizer and without the model that it starts from.
  void start_anew(Job& job) {
    job.model.from.clear();
    if (tokenizer_folder_.empty()) {
      tokenizer_folder_ = scratch_->path() + "/tokenizer";
      make_directories(tokenizer_folder_);
      if (prepared_->has_tokenizer()) save_tokenizer_folder(prepared_->tokenizer(), tokenizer_folder_);
    }
    if (prepared_->has_tokenizer()) job.data.tokenizer = tokenizer_folder_;
  }

  bool can_be_timed(const JobSize& size) const {
    const double update = guessed_step_seconds(size, planning_.here) -
                          size.tokens_per_step() * size.flop_per_token / (0.4e9 * products());
    return fits_into(size.memory, planning_.here.memory_bytes) && update < kLongestUpdate;
  }
  double products() const { return std::max({1.0, planning_.here.fp32_products, planning_.here.bf16_products}); }

  std::optional<StepTimes> time(const Job& job, const JobSize& size, bool is_the_job) {
    TimingOptions timing{.folder = folder()};
    timing.seconds = is_the_job ? 2 : kVariationSeconds;
    timing.times_the_rest = is_the_job;
    try {
      StepTimes times = time_steps(job, size, planning_.here, timing);
      if (!is_the_job && times_) {  // an evaluation is so much of a token's training, a save of a checkpoint's bytes
        times.evaluation = times_->evaluation * times.per_token() / times_->per_token();
        times.save = times_->save * static_cast<double>(size.disk.checkpoint) /
                     static_cast<double>(std::max<int64_t>(1, plan_.size.disk.checkpoint));
      }
      timed_.push_back({size, times, layers_text(size)});
      return times;
    } catch (const RunFailed& failure) {
      plan_.notes.push_back(fmt::format("{} could not be timed: {}", layers_text(size), failure.what()));
    }
    return {};
  }

  void time_the_job() {
    if (can_be_timed(plan_.size)) {
      tell("timing steps of the job");
      times_ = time(plan_.job, plan_.size, true);
      basis_ = "steps of the job, timed here";
    } else {
      time_a_stand_in();
    }
    if (plan_.job.training.freeze >= 0 && plan_.job.training.cache_frozen) {
      plan_.notes.emplace_back(
          "Frozen layers were timed as computed in every step; a training of more than one epoch computes them once "
          "(training.cache_frozen) and is faster.");
    }
    if (!plan_.job.training.teacher.empty())
      plan_.notes.emplace_back("The teacher's answers, computed once before the first step, are not counted.");
  }

  void time_a_stand_in() {
    for (int64_t layers = plan_.size.layers / 2; layers >= 1; layers /= 2) {
      const std::optional<Job> fewer = stand_in(layers);
      if (!fewer) return;
      Job job = *fewer;
      JobSize size = prepared_->size_of(job, false);
      if (!can_be_timed(size) && layers == 1) {  // in the smallest micro-batches, too
        job.training.micro_batch_tokens = size.longest;
        size = prepared_->size_of(job, false);
      }
      if (!can_be_timed(size)) continue;
      tell(fmt::format("timing steps with {} of its {}", layers, plural(plan_.size.layers, "layer")));
      const std::optional<StepTimes> times = time(job, size, true);
      if (!times) return;
      times_ = scaled_to_model(*times, size, plan_.size, planning_.here);
      basis_ = fmt::format("steps with {} of its {} timed here, the rest by FLOP ({})", layers,
                           plural(plan_.size.layers, "layer"),
                           fits_into(plan_.size.memory, planning_.here.memory_bytes) ? "an update of all takes too long"
                                                                                     : "all of it does not fit here");
      return;
    }
    plan_.notes.emplace_back("Nothing of this job fits into this machine's memory, so nothing could be timed.");
  }

  // Timed if that takes no more than is left, or else scaled from what was.
  std::pair<std::optional<StepTimes>, std::string> times_of(const Job& job, const JobSize& size) {
    if (timed_.empty()) return {};
    const TimedSize& nearest = nearest_to(timed_, size.width, size.layers);
    const StepTimes scaled = scaled_to_model(nearest.times, nearest.size, size, planning_.here);
    constexpr double kStarts = 1.5;  // of the job's own start, and parameters that are made
    const double parameters =
        static_cast<double>(size.parameters) / static_cast<double>(std::max<int64_t>(1, plan_.size.parameters));
    const double cost = kStarts + scaled.start_up * std::max(1.0, 0.5 * parameters) +
                        std::max(2 * kVariationSeconds, 4 * scaled.step_seconds(size.tokens_per_step()));
    if (can_be_timed(size) && cost < left()) {
      if (const auto times = time(job, size, false)) return {times, "steps of it, timed here"};
    }
    return {scaled, fmt::format("scaled by FLOP from {}, timed here", nearest.what)};
  }

  void add_what_if(Outlook outlook, const char* id, std::string change, std::vector<std::string> settings) {
    outlook.id = id;
    outlook.change = std::move(change);
    outlook.settings = std::move(settings);
    plan_.what_if.push_back(std::move(outlook));
  }

  void ask_what_if() {
    if (!times_) return;
    if (plan_.job.model.from.empty()) {
      larger("layers", fmt::format("twice the layers, {}", 2 * plan_.size.layers),
             {fmt::format("model.num_layers={}", 2 * plan_.size.layers)});
      larger("width", fmt::format("twice the width, {}", 2 * plan_.size.width),
             {fmt::format("model.d_model={}", 2 * plan_.size.width)});
    }
    const JobSize more = with_more_data(plan_.job, plan_.size, 2);
    add_what_if(outlook(plan_.job, more, times_, basis_), "data", "twice the data", {});
    for (const int64_t machines : {2, 4}) several(machines);
  }

  // The job whose step is what a rank has of this one's; none where some rank would have nothing.
  std::optional<std::pair<Job, std::string>> part_of(int64_t ranks) const {
    Job part = plan_.job;
    TrainingOptions& training = part.training;
    const int64_t step = training.batch_size * training.gradient_accumulation_steps;
    if (step < ranks) return {};
    if (training.gradient_accumulation_steps % ranks == 0) {
      training.gradient_accumulation_steps /= ranks;
      return std::pair(part,
                       fmt::format("training.gradient_accumulation_steps={}", training.gradient_accumulation_steps));
    }
    if (training.batch_size % ranks == 0) {
      training.batch_size /= ranks;
      return std::pair(part, fmt::format("training.batch_size={}", training.batch_size));
    }
    // The rank that has most.
    training.batch_size = (step + ranks - 1) / ranks;
    training.gradient_accumulation_steps = 1;
    return std::pair(part, std::string());
  }

  // With the threads that a rank has, its part is timed here and scaled by what the ranks reach while all compute.
  void divide_among_ranks() {
    const RankNetwork& network = *planning_.other->ranks;
    const auto found = part_of(network.size);
    if (!found) {
      plan_.notes.push_back(fmt::format("A step has fewer sequences than the {} ranks of {}: some would have none.",
                                        network.size, planning_.other->path));
      return;
    }
    Job part = found->first;
    const JobSize size = prepared_->size_of(part, false);
    tell(fmt::format("the part of one of {} ranks", network.size));
    MachineRates here = planning_.here;
    const bool has_threads = !planning_.other->on_gpu && !here.on_gpu && network.threads > 0;
    if (has_threads && network.threads < here.cores) {
      part.training.threads = network.threads;
      const ThreadsScope threads(static_cast<int>(network.threads));
      here = machine_rates_of(measure_machine(part), prepared_->device());
    }
    const auto times = can_be_timed(size) ? time(part, size, false) : times_of(part, size).first;
    if (!times) return;
    const StepTimes there = scaled_to_machine(*times, size, here, *planning_.other,
                                              precision_on(*planning_.other, part.training.precision));
    plan_.outlook = on_ranks(network, plan_.outlook, plan_.size, size, there);
    plan_.outlook.fits = fits_into(size.memory, machine().memory_bytes);
    plan_.outlook.basis = fmt::format(
        "the part of one of {} ranks timed here{}, scaled by what ranks reach there at once, and {} communication",
        network.size, has_threads ? fmt::format(" with {}", plural(part.training.threads, "thread")) : "",
        network.sum.empty() ? "described" : "measured");
  }

  void larger(const char* id, const std::string& change, const std::vector<std::string>& settings) {
    try {
      Job job = options_.load(plan_.path, settings);
      job.model.vocab_size = plan_.job.model.vocab_size;  // the data's
      job.model.source_vocab_size = plan_.job.model.source_vocab_size;
      job.model.num_labels = plan_.job.model.num_labels;
      const JobSize size = prepared_->size_of(job, false);
      tell(change);
      const auto [times, basis] = times_of(job, size);
      add_what_if(outlook(job, size, times, basis), id, change, settings);
    } catch (const UserError& error) {
      plan_.notes.push_back(fmt::format("{}: {}", change, error.what()));
    }
  }

  void several(int64_t machines) {
    const auto found = part_of(machines);
    if (!found || found->second.empty()) return;
    const auto& [part, setting] = *found;
    const JobSize size = prepared_->size_of(part, false);
    tell(fmt::format("the part of one of {} machines", machines));
    auto [times, basis] = times_of(part, size);
    if (!times) return;
    if (planning_.other) {
      times = scaled_to_machine(*times, size, planning_.here, *planning_.other,
                                precision_on(*planning_.other, part.training.precision));
      basis += ", then scaled by the measured rates of both machines";
    }
    Outlook outlook = on_ranks({.size = machines}, plan_.outlook, plan_.size, size, *times);
    const RankWork work = work_of_rank(size, *times);
    for (const double gigabits : {1.0, 10.0, 100.0}) {
      constexpr double kLatency = 3e-5;  // of a message over Ethernet
      outlook.networks.push_back(
          {gigabits, step_on_ranks(work, made_up_network(machines, gigabits, kLatency)).exposed()});
    }
    outlook.basis = basis;
    add_what_if(outlook, "machines",
                fmt::format("{} machines, {:.0f} sequences each", machines, size.sequences_per_step), {setting});
  }

  // Of the usual shapes that fit, by the steps that were timed so far.
  std::vector<ShapeCandidate> shape_candidates() {
    std::vector<ShapeCandidate> candidates;
    for (const LayersOfWidth& shape : usual_shapes()) {
      const Job job = with_shape(shape.layers, shape.width);
      const JobSize size = prepared_->size_of(job, false);
      if (!fits_into(size.memory, machine().memory_bytes)) break;
      const TimedSize& nearest = nearest_to(timed_, shape.width, shape.layers);
      const StepTimes times = scaled_to_model(nearest.times, nearest.size, size, planning_.here);
      candidates.push_back(
          {shape.layers, shape.width, size.parameters, outlook(job, size, times, "").tokens_per_second});
    }
    return candidates;
  }

  Job with_shape(int64_t layers, int64_t width) const {
    Job job = plan_.job;
    job.model.d_model = width;
    job.model.num_layers = layers;
    job.model.num_heads = job.model.num_kv_heads = job.model.d_ff = 0;
    resolve_defaults(job);
    return job;
  }

  void choose_shapes() {
    const TaskTraits& task = traits_of_task(plan_.job.task);
    const bool is_language_model = !task.trains_encoder && !task.trains_encoder_decoder;
    if (!times_ || !is_language_model || !plan_.job.model.from.empty()) return;
    tell("shapes for a given time");
    std::vector<double> lengths = {600, 3600, 8 * 3600};
    if (plan_.outlook.run_seconds > 0) lengths.push_back(plan_.outlook.run_seconds);
    std::sort(lengths.begin(), lengths.end());
    std::vector<ShapeCandidate> candidates = shape_candidates();
    // Far from what was timed, the first choice is timed too.
    if (const auto first = shape_for_time(candidates, lengths.front(), plan_.size.tokens_per_epoch)) {
      const bool is_known = std::any_of(timed_.begin(), timed_.end(),
                                        [&](const TimedSize& each) { return each.size.width == first->width; });
      const Job job = with_shape(first->layers, first->width);
      if (!is_known) times_of(job, prepared_->size_of(job, false));
      candidates = shape_candidates();
    }
    for (const double seconds : lengths) {
      if (const auto shape = shape_for_time(candidates, seconds, plan_.size.tokens_per_epoch))
        plan_.shapes.push_back(*shape);
    }
  }

  // As many entries as such a model has, since an update writes them all: those of the job's own tokenizer, and names that
  // no text has. Its folder, where it is no WordPiece.
  std::string tokenizer_of_size(int64_t entries) {
    const std::string own = tokenizer_folder_ + "/vocab.txt";
    if (!file_exists(own)) return tokenizer_folder_;
    std::string text = read_file(own, file_kind::tokenizer);
    for (int64_t i = prepared_->tokenizer().vocab_size(); i < entries; ++i) text += fmt::format("[unused-{}]\n", i);
    const std::string folder = fmt::format("{}/pieces", scratch_->path());
    make_directories(folder);
    write_file_atomically(folder + "/vocab.txt", text);
    return folder + "/vocab.txt";
  }

  // Two layers of each width are timed with the job's own texts; further layers by FLOP.
  void choose_models() {
    if (!times_) return;
    tell("models that it could start from");
    const std::vector<TimedSize> before = std::exchange(timed_, {});
    for (const TimedSize& each : before) {
      constexpr double kAlike = 0.8;  // of a vocabulary
      if (static_cast<double>(each.size.vocabulary) >= kAlike * static_cast<double>(known_models().front().vocabulary))
        timed_.push_back(each);
    }
    for (const KnownModel& model : known_models()) {
      constexpr int64_t kTimedLayers = 2;
      const Job whole = job_with(model, plan_.job, model.layers, model.vocabulary);
      const JobSize size = prepared_->size_of(whole, false);
      const bool is_known = std::any_of(timed_.begin(), timed_.end(),
                                        [&](const TimedSize& each) { return each.size.width == model.width; });
      if (!is_known) {
        Job few = job_with(model, plan_.job, kTimedLayers, model.vocabulary);
        start_anew(few);
        few.data.tokenizer = tokenizer_of_size(model.vocabulary);
        if (few.data.tokenizer == tokenizer_folder_) few.model.vocab_size = prepared_->tokenizer().vocab_size();
        const JobSize few_size = prepared_->size_of(few, false);
        if (timed_.empty() && can_be_timed(few_size)) {
          time(few, few_size, false);
        } else {
          times_of(few, few_size);
        }
      }
      if (timed_.empty()) timed_ = before;
      const TimedSize& nearest = nearest_to(timed_, model.width, model.layers);
      const StepTimes times = scaled_to_model(nearest.times, nearest.size, size, planning_.here);
      const Outlook its = outlook(whole, size, times, fmt::format("by FLOP from {}, timed here", nearest.what));
      plan_.models.push_back({.name = model.name,
                              .download = model.download,
                              .layers = model.layers,
                              .width = model.width,
                              .parameters = size.parameters,
                              .flop_per_token = size.flop_per_token,
                              .memory_bytes = its.memory_bytes,
                              .model_bytes = static_cast<int64_t>(sizeof(float)) * size.parameters,
                              .fits = its.fits,
                              .tokens_per_second = its.tokens_per_second,
                              .epoch_seconds = its.epoch_seconds,
                              .basis = its.basis});
    }
    timed_.insert(timed_.end(), before.begin(), before.end());
  }

  const PlanOptions& options_;
  const Planning& planning_;
  int64_t started_;
  JobPlan plan_;
  std::optional<PreparedJob> prepared_;
  std::optional<ScratchFolder> scratch_;
  std::string tokenizer_folder_;
  std::optional<StepTimes> times_;  // of the job, here
  std::string basis_;
  std::vector<TimedSize> timed_;
  int folders_ = 0;
};

}  // namespace

Planning make_plan(const PlanOptions& options) {
  const int64_t started = kSystemClock.nanoseconds();
  std::vector<Job> jobs;
  for (const std::string& path : options.paths) jobs.push_back(options.load(path, {}));
  Planning planning;
  if (!options.machine_path.empty())
    planning.other = read_machine_file(options.machine_path, jobs.front().device != "cpu");
  const DeviceChoice place = choose_device(jobs.front().device, "device");
  say("[{}] measuring this machine", format_duration(kSystemClock.seconds_since(started)));
  planning.here = machine_rates_of(measure_machine(jobs.front()), *place.device);
  for (size_t i = 0; i < jobs.size(); ++i)
    planning.jobs.push_back(JobPlanner(options, options.paths[i], planning, started).plan(std::move(jobs[i])));
  planning.seconds = kSystemClock.seconds_since(started);
  return planning;
}

}  // namespace brisk
