#include "doctor/plan/job_size.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/machine.h"
#include "base/rounding.h"
#include "base/terminal/terminal.h"
#include "checkpoint/checkpoint.h"
#include "doctor/measure/update_cost.h"
#include "infer/open/model_source.h"
#include "infer/precision.h"
#include "job/job_options.h"
#include "job/run_length.h"
#include "models/model_costs.h"
#include "train/run/plan/cadence.h"
#include "train/run/plan/engine_plan.h"
#include "train/run/plan/plan_run_length.h"
#include "train/run/plan/resource_checks.h"

namespace brisk {

namespace {

// The program itself, tokenizer and loader; as measured of jobs with small vocabularies and tables.
constexpr int64_t kProgram = int64_t{48} << 20;

DataRequest data_request(const Job& job) {
  DataRequest request;
  if (job.model.from.empty()) return request;
  const ModelSource source = open_model_source(job.model.from);
  if (job.data.tokenizer.empty()) request.model_tokenizer = source.tokenizer();
  request.model_labels = source.labels;
  return request;
}

int64_t bytes_of_files(const std::vector<std::string>& paths) {
  int64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    if (!missing) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

int64_t checkpoints_of_run(const Job& job, const JobSize& size) {
  const TrainingOptions& training = job.training;
  const int64_t steps = size.total_steps > 0 ? size.total_steps : size.steps_per_epoch;
  int64_t saves = 1;
  if (training.save_steps > 0) saves += steps / training.save_steps;
  if (training.save_steps == 0) saves = std::max(saves, steps / size.steps_per_epoch);
  if (training.load_best_model_at_end && size.validation_sequences > 0) ++saves;  // the best one, while it is another
  return saves;
}

}  // namespace

PreparedJob::PreparedJob(Job job) : job_(std::move(job)), task_(make_task(job_)) {
  place_ = training_device(*task_, job_);
  check_precision(job_.training.precision, *place_.device);
  check_master_weights(job_.training.master_weights, job_.training.precision, *place_.device);
  data_ = task_->prepare(job_, data_request(job_));
  job_ = with_found(std::move(job_), data_.found);
  if (data_.train->empty()) user_error("{}: no training sequences in it", job_.data.train.front().path);
}

EngineOptions PreparedJob::engine_of(const Job& job) const {
  Padding padding;
  const std::vector<LengthFigures> lengths = computed_lengths(job.training, data_, task_->batch_layout(job), padding);
  const int64_t asked = job.training.micro_batch_tokens;
  if (asked > 0 && asked < lengths[0].longest) {
    user_error(
        "training.micro_batch_tokens {} is less than the longest sequence, {}: raise it, or lower training.max_length",
        asked, lengths[0].longest);
  }
  return plan_engine(*task_, job, *place_.device, lengths).options;
}

// In whole sequences of the longest length, to within one in sixteen.
int64_t PreparedJob::largest_micro_batch(EngineOptions options) const {
  const int64_t available = memory_for_engine(*place_.device) - kAdviceSlack, longest = options.capacity.longest;
  constexpr int64_t kMost = 1 << 18;  // sequences: more than any batch
  const auto fits = [&](int64_t sequences) {
    options.capacity = options.layout.capacity(sequences * longest, longest);
    return plan_memory(options).total() <= available;
  };
  if (!fits(1)) return 0;
  int64_t low = 1, high = 2;
  while (high <= kMost && fits(high)) low = high, high *= 2;
  for (int i = 0; i < 4 && high - low > 1; ++i) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low * longest;
}

void PreparedJob::count_disk(const Job& job, const MemoryPlan& memory, JobSize& size) const {
  const int64_t limit = job.training.save_total_limit;
  JobSize::Disk& disk = size.disk;
  disk.checkpoint = memory.saved_bytes;
  disk.saves = checkpoints_of_run(job, size);
  disk.kept = limit > 0 ? std::min(limit, disk.saves) : disk.saves;
  disk.at_most = checkpoints_bytes(memory.saved_bytes, limit, disk.saves);
  disk.cache = bytes_of_files(data_.cache_files);
  disk.other = job.training.lora_rank > 0 || memory.trained_parameters < memory.parameters
                   ? static_cast<int64_t>(sizeof(float)) * (memory.parameters - memory.trained_parameters)
                   : 0;
  disk.free = disk_free_bytes(run_directory_of(job));
}

JobSize PreparedJob::size_of(const Job& job, bool counts_largest) const {
  const EngineOptions options = engine_of(job);
  const MemoryPlan memory = plan_memory(options);
  JobSize size{.parameters = memory.parameters,
               .trained_parameters = memory.trained_parameters,
               .layers = job.model.num_layers,
               .width = job.model.d_model,
               .vocabulary = job.model.vocab_size};
  for (const ComponentCost& cost : model_costs(options.model, row_means(*data_.train, options.layout))) {
    size.components.push_back({cost.component, cost.parameters, cost.flop_per_token});
    size.flop_per_token += cost.flop_per_token;
  }
  ParameterStore store;
  const std::unique_ptr<Model> model = make_model(options.model, store);
  size.update_bytes = static_cast<double>(update_bytes(memory.trained_parameters));
  size.update_flop = update_flop(store, job.training);
  size.memory = {.weights = memory.state.masters + memory.state.copies,
                 .gradients = memory.state.gradients,
                 .optimizer = memory.state_bytes - memory.state.masters - memory.state.copies - memory.state.gradients,
                 .activations = memory.activation_bytes,
                 .evaluation = memory.evaluation_bytes,
                 .workspaces = memory.workspace_bytes,
                 .copy = room_for_copy(memory, *place_.device, memory_available()),
                 .program = kProgram};
  size.micro_batch_tokens = options.capacity.rows;
  if (counts_largest) size.largest_micro_batch_tokens = largest_micro_batch(options);

  size.sequences_per_epoch = static_cast<double>(data_.sequences_per_epoch);
  size.tokens_per_epoch = data_.rows_per_epoch;
  size.longest = options.capacity.longest;
  size.validation_sequences = static_cast<double>(data_.validation->count());
  size.validation_tokens = static_cast<double>(data_.validation->all_rows());
  const int64_t per_step = job.training.batch_size * job.training.gradient_accumulation_steps;
  size.sequences_per_step = static_cast<double>(per_step);
  size.steps_per_epoch = divide_up(data_.sequences_per_epoch, per_step);
  if (const auto steps = steps_of_run(job.training, size.steps_per_epoch, size.tokens_per_step())) {
    size.total_steps = *steps;
  } else {
    size.box_seconds = seconds_of_box(job.training);
  }
  count_disk(job, memory, size);
  return size;
}

bool fits_into(const JobSize::Memory& memory, int64_t available) {
  return memory.engine() <= available - kProgramBytes;
}

}  // namespace brisk
