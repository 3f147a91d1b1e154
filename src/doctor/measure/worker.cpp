#include "doctor/measure/worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/parse_json.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "data/batch/packer.h"
#include "doctor/ladder/statistics.h"
#include "doctor/measure/block.h"
#include "doctor/measure/first_loss.h"
#include "doctor/measure/gradient_file.h"
#include "doctor/measure/update_cost.h"
#include "doctor/readings/readings.h"
#include "infer/device_choice.h"
#include "infer/precision.h"
#include "job/tables.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/setup.h"

namespace brisk {

namespace {

using nlohmann::ordered_json;

// Lines in and out of two pipes.
class Pipe {
 public:
  Pipe(int commands, int answers) : commands_(commands), answers_(answers) {}

  // Nothing at the end.
  std::optional<std::string> read_line() {
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char bytes[4096];
      const ssize_t count = ::read(commands_, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return {};
      buffer_.append(bytes, static_cast<size_t>(count));
    }
  }

  void answer(const ordered_json& json) {
    const std::string line = json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < line.size();) {
      const ssize_t count = ::write(answers_, line.data() + at, line.size() - at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) ::_exit(0);  // nobody reads any more
      at += static_cast<size_t>(count);
    }
  }

 private:
  int commands_, answers_;
  std::string buffer_;
};

int64_t rows_of(const StepBatch& batch) {
  int64_t rows = 0;
  for (const MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.rows();
  return rows;
}

// By which it is seen whether a tensor changes. With the rounded copy, where there is one: of several ranks, the master of a
// matrix that another one updates stays there (GradientExchange::share_masters).
std::vector<uint64_t> hashes_of(const ParameterStore& store) {
  constexpr size_t kPiece = 1 << 16;
  std::vector<uint64_t> hashes;
  std::vector<float> numbers(kPiece);
  std::vector<char> rounded;
  for (const auto& parameter : store.all()) {
    uint64_t hash = 0;
    if (const Tensor& copy = parameter->copy) {
      rounded.resize(static_cast<size_t>(parameter->count() * size_of(copy.type)));
      store.device().copy_out(rounded.data(), copy.data, std::ssize(rounded));
      hash = hash_bytes({rounded.data(), rounded.size()}, hash);
    }
    for (int64_t first = 0; first < parameter->count(); first += std::ssize(numbers)) {
      const auto count = static_cast<size_t>(std::min<int64_t>(std::ssize(numbers), parameter->count() - first));
      store.read(*parameter, first, std::span(numbers).first(count));
      hash = hash_bytes({reinterpret_cast<const char*>(numbers.data()), count * sizeof(float)}, hash);
    }
    hashes.push_back(hash);
  }
  return hashes;
}

bool has_gradient(const ParameterStore& store, const Parameter& parameter) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<float> numbers(kPiece);
  for (int64_t first = 0; first < parameter.count(); first += kPiece) {
    const int64_t count = std::min(kPiece, parameter.count() - first);
    store.device().copy_out(numbers.data(), parameter.gradient.f32() + first, count * size_of(DType::f32));
    if (std::any_of(numbers.begin(), numbers.begin() + count, [](float number) { return number != 0; })) return true;
  }
  return false;
}

class Worker final : public RunObserver {
 public:
  explicit Worker(const WorkerOptions& options)
      : pipe_(options.commands, options.answers), gradient_path_(options.gradient_path) {}

  void prepared(const RunPlan& plan, RunState& run, RunResources& resources) override {
    plan_ = &plan;
    run_ = &run;
    resources_ = &resources;
    hashes_ = hashes_of(store());
    const double rows_per_step =
        plan.data.rows_per_epoch / static_cast<double>(std::max<int64_t>(1, plan.steps_per_epoch));
    pipe_.answer({{"ready",
                   {{"start_up_seconds", run.ledger.totals().seconds()},
                    {"sequences_per_step", plan.loader_options.sequences_per_step},
                    {"steps_per_epoch", plan.steps_per_epoch},
                    {"total_steps", run.total_steps},
                    {"tokens_per_epoch", plan.data.rows_per_epoch},
                    {"gigaflop_per_step", 1e-9 * plan.flop_per_token * rows_per_step},
                    {"peak_gflops", resources.peak->gflops()},
                    {"planned_bytes", plan.memory.total()},
                    {"longest", plan.data.train->longest()},
                    {"validation_rows", plan.data.validation->all_rows()},
                    {"on_gpu", store().device().is_cuda()},
                    {"micro_batch_tokens", plan.tuned.micro_batch_tokens},
                    {"precision", precision_name(plan.tuned.compute_type, plan.tuned.products)},
                    {"validation_sequences", plan.data.validation->count()}}}});
    obey();
  }

  bool wants_gradient(int64_t step) const override { return step == 1 && !gradient_path_.empty(); }

  // What would be begun of the next step would not be in this block's time, and in the way of another run's.
  bool stops_after(int64_t /*step*/) const override {
    return block_.sequences + plan_->loader_options.sequences_per_step >= wanted_;
  }

  void after_update(const StepBatch& batch, const StepResult& result) override {
    const int64_t step = run_->state.step + 1;
    if (wants_gradient(step)) resources_->engine->collect_gradient();
    if (wants_gradient(step)) write_gradient(gradient_path_, result.loss(), result.scaling, store());
    if (examples_.empty()) remember_examples(batch);
    ++block_.steps;
    block_.micro_batches += std::ssize(batch.micro_batches);
    block_.sequences += result.sequences;
    block_.tokens += static_cast<double>(result.tokens);
    block_.rows += static_cast<double>(result.rows);
    block_.targets += static_cast<double>(result.targets);
    block_.step_losses.push_back(result.loss());
    block_.step_tokens.push_back(static_cast<double>(result.tokens));
    if (first_loss_ < 0) first_loss_ = result.loss();
    last_loss_ = result.loss();
    loss_finite_ = loss_finite_ && std::isfinite(result.loss());
  }

  void after_step() override {
    const int64_t now = plan_->clock().nanoseconds();
    block_.step_seconds.push_back(1e-9 * static_cast<double>(now - step_start_));
    step_start_ = now;
    if (block_.sequences < wanted_) return;
    block_.seconds = 1e-9 * static_cast<double>(now - block_start_);
    block_.ledger = run_->ledger.totals() - ledger_start_;
    block_.counters = read_counters() - counters_start_;
    if (!store().device().is_cuda())
      block_.forward_passes = resources_->engine->forward_passes() - forward_passes_start_;
    if (watches_gpu_) {
      const GpuWork work = resources_->engine->gpu_work();
      block_.gpu_busy_seconds = work.busy_seconds;
      block_.gpu_kernels = work.all_counted ? work.kernels : -1;
    }
    pipe_.answer({{"block", block_to_json(block_)}});
    obey();
  }

 private:
  ParameterStore& store() { return resources_->engine->parameters(); }

  // Commands, until one lets the steps go on.
  void obey() {
    for (;;) {
      const std::optional<std::string> line = pipe_.read_line();
      if (!line) ::_exit(0);
      const auto command = parse_own_json<ordered_json>(*line);
      if (command.contains("evaluate")) {
        evaluate(command["evaluate"]);
      } else if (command.contains("save")) {
        save();
      } else if (command.contains("curve")) {
        measure_curve(command["curve"], command.at("seconds"));
      } else if (command.contains("readings")) {
        pipe_.answer({{"readings", readings_to_json(readings())}});
      } else {
        wanted_ = command.at("go");
        watches_gpu_ = command.at("watch").get<bool>() && store().device().is_cuda();
        begin_block();
        return;
      }
    }
  }

  void begin_block() {
    block_ = {};
    if (watches_gpu_) resources_->engine->watch_gpu();
    counters_start_ = read_counters();
    ledger_start_ = run_->ledger.totals();
    forward_passes_start_ = resources_->engine->forward_passes();
    block_start_ = step_start_ = plan_->clock().nanoseconds();
  }

  void evaluate(int64_t count) {
    const Sequences& validation = *plan_->data.validation;
    const int64_t evaluated = std::min(count, validation.count());
    const int64_t start = plan_->clock().nanoseconds();
    if (evaluated > 0) resources_->engine->evaluate(validation, run_->ledger, evaluated);
    pipe_.answer(
        {{"seconds", plan_->clock().seconds_since(start)}, {"sequences", evaluated}, {"of", validation.count()}});
  }

  void save() {
    CheckpointSaver saver({.run = plan_->directory.path(), .keep = 1, .copy_bytes = plan_->memory.copy_bytes});
    const int64_t start = plan_->clock().nanoseconds();
    saver.begin(store(), run_->state, SaveMode::in_background);
    const double exposed = plan_->clock().seconds_since(start);
    const SavedCheckpoint saved = saver.take();
    if (!saved.result.ok()) user_error("{}", saved.result.problem);
    pipe_.answer({{"seconds", exposed}, {"write_seconds", saved.write_seconds}});
  }

  // Speeds of micro-batches of 1, 2, 4, ... sequences, as far as they fit into the program.
  void measure_curve(int64_t most, double most_seconds) {
    const int64_t begin = plan_->clock().nanoseconds();
    const double each = most_seconds / 16;
    constexpr int64_t kRepeats = 50, kMostWarming = 12, kStride = 7919;  // from all over the data
    const Sequences& train = *plan_->data.train;
    const RowLimits& limits = plan_->loader_options.micro_batch_rows;
    auto points = ordered_json::array();
    int64_t next = 0;
    for (int64_t size = 1; size <= most && size <= train.count(); size *= 2) {
      if (size > 1 && (size * train.longest() > limits.front() || plan_->clock().seconds_since(begin) > most_seconds))
        break;
      std::vector<double> seconds_per_row, update_seconds;
      double seconds = 0;  // of those that count
      for (int64_t i = 0; i < kRepeats && seconds < each; ++i) {
        StepBatch batch;
        std::vector<int64_t> numbers;
        for (int64_t each_of = 0; each_of < size; ++each_of) numbers.push_back(next++ * kStride % train.count());
        batch.micro_batches = pack_step(train, numbers, 0, limits);
        batch.sequences = size;
        count_targets(batch);
        const Ledger::Totals before = run_->ledger.totals();
        resources_->engine->train_step(batch, run_->state.step + 1, 0.0, run_->ledger);
        const Ledger::Totals used = run_->ledger.totals() - before;
        // Of a size that is new to a GPU an algorithm is chosen and a graph is recorded.
        const bool is_new = resources_->engine->settled_passes() < 1;
        if (i == 0 || (is_new && i < kMostWarming)) continue;
        seconds += used.seconds();
        update_seconds.push_back(used.seconds(Phase::clipping) + used.seconds(Phase::optimizer));
        seconds_per_row.push_back((used.seconds() - update_seconds.back()) / static_cast<double>(rows_of(batch)));
      }
      points.push_back({size, 1 / median(seconds_per_row), median(update_seconds)});
    }
    pipe_.answer({{"points", points}});
  }

  // The first sequences of the first micro-batch, decoded.
  void remember_examples(const StepBatch& batch) {
    constexpr int64_t kExamples = 3;
    if (reads_images(plan_->job.model.type)) return;
    const MicroBatch::Set& set = batch.micro_batches.front().sets.front();
    for (int64_t i = 0; i < std::min(kExamples, set.sequences()); ++i) {
      const auto begin = static_cast<size_t>(set.starts[static_cast<size_t>(i)]);
      const auto end = static_cast<size_t>(set.starts[static_cast<size_t>(i) + 1]);
      if (set.tokens.size() < end) return;
      examples_.push_back(plan_->data.tokenizer->decode(std::span(set.tokens).subspan(begin, end - begin)));
    }
  }

  VitalSigns vital_signs() {
    constexpr size_t kNamed = 5;
    VitalSigns signs{.measured = true, .first_loss = first_loss_, .last_loss = last_loss_, .loss_finite = loss_finite_};
    const std::vector<uint64_t> now = hashes_of(store());
    for (size_t i = 0; i < now.size(); ++i) {
      const Parameter& parameter = *store().all()[i];
      if (!parameter.gradient) continue;
      ++signs.tensors;
      const bool changed = now[i] != hashes_[i], graded = has_gradient(store(), parameter);
      signs.tensors_changed += changed ? 1 : 0;
      signs.tensors_with_gradient += graded ? 1 : 0;
      if (!changed && signs.unchanged.size() < kNamed) signs.unchanged.push_back(parameter.spec.name);
      if (!graded && signs.without_gradient.size() < kNamed) signs.without_gradient.push_back(parameter.spec.name);
    }
    const bool starts_anew = plan_->job.model.from.empty();
    if (traits_of_task(plan_->job.task).has_labels) {
      signs.expected_first_loss = std::log(static_cast<double>(std::max<size_t>(2, plan_->data.labels.names().size())));
    } else if (starts_anew) {  // of what is written, which may have another tokenizer than what is read
      const bool translates = traits_of_task(plan_->job.task).trains_encoder_decoder;
      const int64_t entries = translates ? plan_->job.model.vocab_size : plan_->data.tokenizer->vocab_size();
      signs.expected_first_loss = first_loss_of_a_new_model(store(), entries);
    }
    signs.examples = examples_;
    return signs;
  }

  DataReadings data_readings() const {
    const Sequences& train = *plan_->data.train;
    DataReadings data{.sequences = plan_->data.sequences_per_epoch, .tokens = plan_->data.rows_per_epoch};
    constexpr int64_t kMostRead = 200'000;
    const int64_t count = train.count(), read = std::min(count, kMostRead);
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < read; ++i) lengths.push_back(train.rows(i * count / read));
    std::sort(lengths.begin(), lengths.end());
    const auto at = [&](double share) { return lengths[static_cast<size_t>(share * static_cast<double>(read - 1))]; };
    data.longest = train.longest();
    data.median = at(0.5);
    data.p90 = at(0.9);
    data.p99 = at(0.99);
    data.mean = static_cast<double>(train.total_rows()) / static_cast<double>(count);
    constexpr int64_t kBuckets = 32;
    const int64_t width = std::max<int64_t>(1, (data.longest + kBuckets - 1) / kBuckets);
    for (int64_t first = 1; first <= data.longest; first += width) {
      const auto begin = std::lower_bound(lengths.begin(), lengths.end(), first);
      const auto end = std::lower_bound(lengths.begin(), lengths.end(), first + width);
      data.lengths.push_back({first, std::min(first + width - 1, data.longest), (end - begin) * count / read});
    }
    data.distinct_tokens = distinct_tokens(train);
    return data;
  }

  // Of the first few million.
  static double distinct_tokens(const Sequences& train) {
    constexpr int64_t kMostRows = 3'000'000;
    std::vector<bool> seen;
    MicroBatch batch;
    batch.sets.resize(static_cast<size_t>(train.sets()));
    int64_t rows = 0;
    for (int64_t i = 0; i < train.count(); ++i) {
      if ((rows += train.rows(i)) > kMostRows) return -1;
      batch.clear();
      train.append(i, 0, 0, batch);
      for (const int32_t token : batch.sets.front().tokens) {
        if (token >= std::ssize(seen)) seen.resize(static_cast<size_t>(token) + 1);
        seen[static_cast<size_t>(token)] = true;
      }
    }
    const auto count = std::count(seen.begin(), seen.end(), true);
    return count > 0 ? static_cast<double>(count) : -1;
  }

  ModelReadings model_readings() {
    ModelReadings model{.parameters = plan_->memory.parameters,
                        .trained_parameters = plan_->memory.trained_parameters,
                        .vocabulary = plan_->data.tokenizer ? plan_->data.tokenizer->vocab_size() : 0,
                        .width = plan_->job.model.d_model,
                        .layers = plan_->job.model.num_layers,
                        .flop_per_token = plan_->flop_per_token,
                        .optimizer_bytes = update_bytes(plan_->memory.trained_parameters),
                        .optimizer_flop = update_flop(store(), plan_->job.training),
                        .precision = precision_name(plan_->tuned.compute_type, plan_->tuned.products)};
    for (const ComponentCost& cost : plan_->costs) {
      model.components.push_back({cost.component, cost.parameters, cost.flop_per_token});
      const double share = plan_->flop_per_token > 0 ? cost.flop_per_token / plan_->flop_per_token : 0;
      if (cost.component == "attention") model.attention_flop_share += share;
      if (cost.component.starts_with("head")) model.head_flop_share += share;
    }
    return model;
  }

  Readings readings() {
    Readings all;
    all.job = plan_->job;
    all.data = data_readings();
    all.model = model_readings();
    all.vital_signs = vital_signs();
    all.stretch.threads = thread_pool().size();
    const Device& device = store().device();
    all.stretch.peak_memory_bytes = device.is_cuda() ? device.memory().peak() : peak_memory_bytes();
    all.stretch.planned_memory_bytes = plan_->memory.total();
    all.stretch.swapped_bytes = swapped_bytes();
    all.stretch.sequences_per_step = static_cast<double>(plan_->loader_options.sequences_per_step);
    if (device.is_cuda()) {
      all.stretch.gpu.name = arithmetic_unit(device);
      all.stretch.gpu.memory_bytes = device.gpu()->memory_bytes;
      // Products in fp32 are the only ones that do not run there.
      all.stretch.gpu.tensor_core_share = all.model.precision == "fp32" ? 0 : 1;
      if (resources_->gpu) {
        const GpuSummary gpu = resources_->gpu->summary();
        all.stretch.gpu.busy_share = gpu.mean_busy_share;
        all.stretch.gpu.sm_mhz = gpu.mean_sm_mhz;
        all.stretch.gpu.watts = gpu.mean_watts;
        all.stretch.gpu.celsius = gpu.max_celsius;
        all.stretch.gpu.memory_used_bytes = gpu.max_memory_used_bytes;
        all.stretch.gpu.max_sm_mhz = gpu.max_sm_mhz;
        all.stretch.gpu.watt_limit = gpu.watt_limit;
        const std::pair<const char*, double> reasons[] = {{"power cap", gpu.power_capped},
                                                          {"temperature", gpu.too_hot},
                                                          {"hardware slowdown", gpu.slowed_by_hardware}};
        for (const auto& [reason, share] : reasons)
          if (share > 0) all.stretch.gpu.throttled[reason] = share;
      }
    }
    all.course.steps_per_epoch = static_cast<double>(plan_->steps_per_epoch);
    all.course.epochs = static_cast<double>(run_->epochs);
    all.course.start_up_seconds = start_up_seconds_;
    all.machine.peak_gflops[all.model.precision] = resources_->peak->gflops();
    return all;
  }

  Pipe pipe_;
  std::string gradient_path_;
  const RunPlan* plan_ = nullptr;
  RunState* run_ = nullptr;
  RunResources* resources_ = nullptr;
  std::vector<uint64_t> hashes_;  // of the parameters before the first step
  std::vector<std::string> examples_;
  double first_loss_ = -1, last_loss_ = -1, start_up_seconds_ = 0;
  bool loss_finite_ = true;
  int64_t wanted_ = 0;  // sequences of the block
  bool watches_gpu_ = false;
  Block block_;
  int64_t block_start_ = 0, step_start_ = 0, forward_passes_start_ = 0;
  Ledger::Totals ledger_start_;
  Counters counters_start_;
};

// A rank that only does what all must do.
class Follower final : public RunObserver {
 public:
  explicit Follower(bool has_gradient) : has_gradient_(has_gradient) {}
  void prepared(const RunPlan& /*plan*/, RunState& /*run*/, RunResources& resources) override {
    resources_ = &resources;
  }
  bool wants_gradient(int64_t step) const override { return step == 1 && has_gradient_; }
  void after_update(const StepBatch& /*batch*/, const StepResult& /*result*/) override {
    if (wants_gradient(++steps_)) resources_->engine->collect_gradient();
  }

 private:
  bool has_gradient_;
  RunResources* resources_ = nullptr;
  int64_t steps_ = 0;
};

}  // namespace

void run_worker(const WorkerOptions& options, ProcessGroup& processes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a doctor that is killed leaves nothing running
  const std::string text = read_file(options.job_path, file_kind::job);
  Job job = job_from_json_text(text, options.job_path);
  if (!processes.is_first()) {
    ::close(options.commands);
    ::close(options.answers);
    Follower follower(!options.gradient_path.empty());
    train(std::move(job), {.processes = &processes, .observer = &follower, .trial = true});
    return;
  }
  Worker worker(options);
  train(std::move(job), {.processes = &processes, .observer = &worker, .trial = true});
}

}  // namespace brisk
