#include "bench/bench_text.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/random.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "data/batch/chunk_sequences.h"
#include "data/batch/loader.h"
#include "data/corpus/corpus.h"
#include "infer/device_choice.h"
#include "models/model_costs.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"
#include "train/record/run_text.h"
#include "train/run/plan/resource_checks.h"

namespace brisk {

namespace {

constexpr int64_t kSteps = 8;  // whose tokens are made; then they come again

void refuse_what_cannot_fit(const TextTraining& training, const EngineOptions& options, const Device& device) {
  const MemoryPlan plan = plan_memory(options);
  const int64_t tokens =
      kSteps * training.batch * training.max_length * 2 * static_cast<int64_t>(sizeof(int32_t));  // as made and as held
  const int64_t needed =
      plan.state_bytes + plan.activation_bytes + plan.workspace_bytes + (device.is_cuda() ? 0 : tokens);
  const int64_t available = memory_for_engine(device, options.process_group().of_machine());
  if (needed <= available) return;
  user_error("this shape needs {} of memory and {} are available; use a smaller {}\n{}",
             format_bytes(static_cast<double>(needed)),
             format_bytes(static_cast<double>(std::max<int64_t>(0, available))), training.sizes, memory_table(plan));
}

// Documents that fill a sequence each, their tokens spread like words: few common, most rare.
std::shared_ptr<const TokenStream> varied_tokens(int64_t documents, int64_t length, int64_t vocab_size) {
  std::vector<std::vector<int32_t>> tokens(static_cast<size_t>(documents));
  const uint64_t key = random_key({2024});
  uint64_t drawn = 0;
  for (auto& document : tokens) {
    for (int64_t i = 0; i < length - 1; ++i) {
      const double skewed = std::pow(random_uniform(key, drawn++), 3.0);
      document.push_back(1 + static_cast<int32_t>(skewed * static_cast<double>(vocab_size - 1)));
    }
  }
  return TokenStream::from_documents(tokens, 0);
}

}  // namespace

TextTrainingFigures bench_text_training(const TextTraining& training) {
  set_bench_threads(training.threads, training.processes);
  const int64_t length = training.max_length, batch = training.batch;
  const DeviceChoice place = choose_bench_device(training.device, training.processes);
  EngineOptions engine_options;
  engine_options.device = place.device;
  engine_options.processes = training.processes;
  engine_options.model = training.model;
  const int64_t rows =
      micro_batch_rows(training.micro_batch_tokens, usual_micro_batch_tokens(place.device),
                       sequences_of_share(batch, training.processes), {length, static_cast<double>(length)});
  engine_options.capacity = {rows, rows, length};
  if (training.optimizer == "muon") engine_options.muon = MuonOptions{};
  refuse_what_cannot_fit(training, engine_options, *place.device);  // before measuring: that takes memory too
  const PrecisionChoice precision = agreed_precision(
      choose_precision(training.precision, model_widths(engine_options.model), *place.device), training.processes);
  engine_options.compute_type = precision.compute_type;
  engine_options.products = precision.products;
  check_master_weights(training.master_weights, training.precision, *place.device);
  engine_options.master_weights = training.master_weights;
  const MemoryPlan plan = plan_memory(engine_options);
  const GpuMemoryExplanation explanation([plan] { return memory_table(plan); });
  Engine engine(engine_options);
  engine.initialise(1);

  const auto stream = varied_tokens(kSteps * batch, length, training.vocab_size);
  Loader loader(text_sequences(stream, whole_corpus(*stream, length).chunks),
                {.sequences_per_step = batch, .micro_batch_rows = {rows}, .share = share_of_step(training.processes)});
  const MeasuredSteps measured = measure_steps(engine, loader, {.seconds = training.seconds});

  TextTrainingFigures figures{figures_of(measured, engine, precision)};
  figures.mean_tokens_per_second = static_cast<double>(measured.tokens) / figures.ledger.seconds();
  figures.batch = batch;
  figures.threads = thread_pool().size();
  const RowMeans even{.rows = static_cast<double>(length), .attended = static_cast<double>(length)};
  figures.flop_per_token = model_flop_per_token(engine_options.model, {&even, 1});
  figures.set_speed(static_cast<double>(batch * length) / measured.median_seconds, figures.flop_per_token);
  figures.state_bytes = plan.state_bytes;
  figures.activation_bytes = plan.activation_bytes;
  figures.workspace_bytes = plan.workspace_bytes + plan.library_bytes;
  figures.device = place.name;
  return figures;
}

}  // namespace brisk
