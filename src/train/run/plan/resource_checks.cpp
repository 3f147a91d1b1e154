#include "train/run/plan/resource_checks.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/machine.h"
#include "base/terminal/terminal.h"
#include "checkpoint/checkpoint.h"
#include "train/record/run_text.h"

namespace brisk {

namespace {

bool is_on_gpu(const EngineOptions& options) { return options.device != nullptr && options.device->is_cuda(); }

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// The largest of the halves that fits, or the smallest there is.
EngineOptions with_smaller_micro_batch(EngineOptions options, int64_t available) {
  while (options.capacity.rows > options.capacity.longest) {
    const int64_t rows = std::max(options.capacity.longest, options.capacity.rows / 2);
    options.capacity = options.layout.capacity(rows, options.capacity.longest);
    if (plan_memory(options).total() <= available - kAdviceSlack) break;
  }
  return options;
}

// The last one included; where the clock decides, from what this machine should be able to compute.
int64_t expected_saves(const RunPlan& plan, const RunState& run, double peak_gflops) {
  const TrainingOptions& training = plan.job.training;
  if (training.save_steps > 0) return run.total_steps / training.save_steps + 1;
  if (training.save_steps == 0 || training.save_minutes <= 0) return run.total_steps / plan.steps_per_epoch + 1;
  constexpr double kUtilisation = 0.4;
  const double tokens =
      static_cast<double>(run.total_steps) * plan.data.rows_per_epoch / static_cast<double>(plan.steps_per_epoch);
  const double seconds = run.time_box
                             ? run.time_box->seconds()
                             : tokens * plan.flop_per_token * 1e-9 / (kUtilisation * std::max(1.0, peak_gflops));
  const int64_t best = training.load_best_model_at_end ? 10 : 0;
  return static_cast<int64_t>(std::min(1e9, seconds / (60 * training.save_minutes))) + best + 1;
}

// ", or set training.save_total_limit to 3 (now 0, which keeps all)"; empty where no limit would do.
std::string limit_advice(int64_t saved_bytes, int64_t limit, int64_t saves, int64_t there) {
  int64_t most = limit > 0 ? limit - 1 : saves;
  most = std::min(most, there / std::max<int64_t>(1, checkpoint_bytes(saved_bytes)));  // no larger one fits
  while (most > 0 && checkpoints_bytes(saved_bytes, most, saves) > there) --most;
  if (most <= 0) return "";
  return fmt::format(", or set training.save_total_limit to {} (now {})", most,
                     limit > 0 ? fmt::format("{}", limit) : "0, which keeps all");
}

}  // namespace

int64_t memory_for_engine(const Device& device, int of_machine) {
  return device.is_cuda() ? device.free_bytes() - kGpuLibraryBytes : memory_available() / of_machine - kProgramBytes;
}

bool fits_in_memory(const EngineOptions& options, int of_machine) {
  return plan_memory(options).total() <=
         memory_for_engine(options.device != nullptr ? *options.device : cpu_device(), of_machine);
}

int64_t room_for_copy(const MemoryPlan& plan, const Device& device, int64_t host_bytes) {
  const int64_t left = host_bytes - kProgramBytes - (device.is_cuda() ? 0 : plan.total());
  return plan.saved_bytes <= left ? plan.saved_bytes : 0;
}

std::vector<MemoryRelief> memory_reliefs(const EngineOptions& options, int64_t available) {
  const int64_t now = plan_memory(options).total();
  std::vector<MemoryRelief> reliefs;
  const auto add = [&](std::string setting, const EngineOptions& changed) {
    const int64_t total = plan_memory(changed).total();
    if (total < now) reliefs.push_back({std::move(setting), total});
  };
  const EngineOptions smaller = with_smaller_micro_batch(options, available);
  const std::string tokens = fmt::format("\"training.micro_batch_tokens\": {}", smaller.capacity.rows);
  add(tokens, smaller);
  if (options.checkpoint_every == 0) {
    EngineOptions recomputed = options;
    recomputed.checkpoint_every = 1;
    add("\"training.gradient_checkpointing\": 1", recomputed);
    EngineOptions both = with_smaller_micro_batch(recomputed, available);
    if (both.capacity.rows < options.capacity.rows) {
      add(fmt::format("\"training.gradient_checkpointing\": 1 and \"training.micro_batch_tokens\": {}",
                      both.capacity.rows),
          both);
    }
  }
  EngineOptions other = options;  // half the activations, but copies of the weights besides
  other.compute_type = options.compute_type == DType::f32 ? DType::bf16 : DType::f32;
  other.products = GemmFormat::own;
  const char* format = other.compute_type == DType::bf16 ? "bf16" : "fp32";
  if (other.compute_type == DType::bf16 || options.master_weights) {  // fp32 has no weights without masters
    add(fmt::format("\"training.precision\": \"{}\"", format), other);
  }
  if (!options.muon) {
    EngineOptions one_moment = options;
    one_moment.muon = MuonOptions{};
    add("\"training.optimizer\": \"muon\"", one_moment);
  }
  if (options.capacity.longest > 1 && options.capacity.rows <= options.capacity.longest) {
    EngineOptions shorter = options;
    const int64_t half = (options.capacity.longest + 1) / 2;
    shorter.capacity = options.layout.capacity(half, half);
    add(fmt::format("\"training.max_length\": {0} and \"training.micro_batch_tokens\": {0}", half), shorter);
  }
  const bool any_fits =
      std::any_of(reliefs.begin(), reliefs.end(), [&](const MemoryRelief& relief) { return fits(relief, available); });
  if (!any_fits && plan_memory(other).total() < now) {
    EngineOptions all = other;
    std::string settings = fmt::format("\"training.precision\": \"{}\"", format);
    if (options.checkpoint_every == 0) settings += " and \"training.gradient_checkpointing\": 1";
    all.checkpoint_every = std::max<int64_t>(1, options.checkpoint_every);
    all = with_smaller_micro_batch(all, available);
    if (all.capacity.rows < options.capacity.rows)
      settings += fmt::format(" and \"training.micro_batch_tokens\": {}", all.capacity.rows);
    add(std::move(settings), all);
  }
  return reliefs;
}

bool fits(const MemoryRelief& relief, int64_t available) { return relief.total <= available - kAdviceSlack; }

std::string explain_memory(const EngineOptions& options, int64_t available) {
  const MemoryPlan plan = plan_memory(options);
  std::string text = memory_table(plan);
  const std::vector<MemoryRelief> reliefs = memory_reliefs(options, available);
  if (reliefs.empty()) return text + "no setting saves any: use a smaller model.d_model, num_layers or vocab_size\n";
  Table table({"setting", {"memory needed", Align::right}, {"saved", Align::right}, "fits"});
  for (const MemoryRelief& relief : reliefs) {
    table.add_row({relief.setting, bytes_text(relief.total), bytes_text(plan.total() - relief.total),
                   fits(relief, available) ? "yes" : "no"});
  }
  return text + "\n" + table.text();
}

MemoryPlan refuse_what_cannot_fit(const EngineOptions& options) {
  const MemoryPlan plan = plan_memory(options);
  const int64_t available = memory_for_engine(options.device != nullptr ? *options.device : cpu_device(),
                                              options.process_group().of_machine());
  if (plan.total() <= available) return plan;
  const std::string needs =
      fmt::format("this job needs {} of memory{} and {} are available", bytes_text(plan.total()),
                  is_on_gpu(options) ? " on the GPU" : "", bytes_text(std::max<int64_t>(0, available)));
  const std::string explanation = explain_memory(options, available);
  for (const MemoryRelief& relief : memory_reliefs(options, available)) {
    if (!fits(relief, available)) continue;
    user_error("{}; {} would fit ({})\n{}", needs, relief.setting, bytes_text(relief.total), explanation);
  }
  user_error(
      "{}, {} of it for parameters, gradients and optimizer; use a smaller model.d_model, model.num_layers or "
      "model.vocab_size\n{}",
      needs, bytes_text(plan.state_bytes), explanation);
}

void refuse_full_disk(const RunPlan& plan, const RunState& run, double peak_gflops) {
  const int64_t limit = plan.job.training.save_total_limit, saves = expected_saves(plan, run, peak_gflops);
  const int64_t needed = checkpoints_bytes(plan.memory.saved_bytes, limit, saves);
  // What a run to be resumed has on the disk already is not needed again.
  const int64_t saved = std::ssize(list_checkpoints(plan.directory.path())) * checkpoint_bytes(plan.memory.saved_bytes);
  const int64_t there = disk_free_bytes(plan.directory.path()) + saved;
  if (needed <= there) return;
  user_error(
      "{}: the checkpoints of this run need {} and the disk has {} free; free some, or choose another --output{}",
      plan.directory.path(), bytes_text(needed), bytes_text(there),
      limit_advice(plan.memory.saved_bytes, limit, saves, there));
}

}  // namespace brisk
