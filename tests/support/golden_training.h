// A language model against what another program made of it: logits, every gradient and ten optimizer steps, from a file
// that scripts/make_golden.py or scripts/make_mu_golden.py wrote.
//
//   const GoldenTraining golden("gpt");
//   golden.compare(options, 1e-5, [](const Model& model, Tape& tape) { return as_decoder(model).logits(tape); });
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "infer/forward/forward_run.h"
#include "support/golden_file.h"
#include "support/numeric.h"
#include "support/tiny_job.h"

namespace brisk::testing {

class GoldenTraining : public GoldenFile {
 public:
  using Logits = std::function<Value(const Model&, Tape&)>;

  explicit GoldenTraining(const std::string& name) : GoldenFile(name) {
    for (size_t step = 0; step < GoldenFile::steps("lengths"); ++step) {
      MicroBatch batch;
      MicroBatch::Set& rows = batch.sets[0];
      rows.tokens = integers("tokens", step);
      rows.targets = integers("targets", step);
      const std::vector<int32_t> lengths = integers("lengths", step);
      for (size_t s = 0; s < lengths.size(); ++s) {
        for (int32_t p = 0; p < lengths[s]; ++p) {
          rows.position.push_back(p);
          rows.sequence.push_back(static_cast<int32_t>(s));
        }
        rows.end_sequence(rows.position.size());
      }
      StepBatch& whole = steps_.emplace_back();
      for (const int32_t target : rows.targets) whole.valid_tokens += target >= 0 ? 1 : 0;
      whole.sequences = std::ssize(lengths);
      whole.micro_batches = {std::move(batch)};
    }
  }

  // All but the model.
  EngineOptions engine_options(ModelConfig model, DType compute_type, Backend backend) const {
    EngineOptions options{.model = std::move(model)};
    options.adamw = adamw();
    options.max_grad_norm = number("max_grad_norm");
    options.capacity = {40, 8, integer("max_length")};
    options.compute_type = compute_type;
    options.backend = backend;
    return options;
  }

  // fp32 and bf16 are compared with the exact values, norm-wise per tensor.
  void compare(const EngineOptions& options, double tolerance, const Logits& logits) const {
    Engine engine(options);
    load_parameters(engine.parameters());
    engine.parameters_changed();
    EXPECT_LE(distance(logits_of(engine, logits), numbers("logits")), tolerance) << "logits";

    const std::vector<float> losses = numbers("losses"), rates = numbers("rates"), norms = numbers("gradient_norms");
    ASSERT_EQ(losses.size(), 10u);
    Ledger ledger;
    for (size_t i = 0; i < losses.size(); ++i) {
      const StepResult result =
          engine.train_step(steps_[i], static_cast<int64_t>(i) + 1, static_cast<double>(rates[i]), ledger);
      EXPECT_EQ(result.targets, steps_[i].valid_tokens);
      EXPECT_NEAR(result.loss(), losses[i], tolerance * losses[i]) << "loss of step " << i + 1;
      EXPECT_NEAR(result.gradient_norm, norms[i], tolerance * norms[i]) << "gradient norm of step " << i + 1;
      if (i > 0) continue;
      for (const auto& parameter : engine.parameters().all()) {
        if (!parameter->gradient) continue;  // frozen
        EXPECT_LE(distance(values_of(engine.parameters().device(), parameter->gradient),
                           numbers("gradients/" + parameter->spec.name)),
                  tolerance)
            << "gradient of " << parameter->spec.name;
      }
    }
  }

 private:
  std::vector<float> logits_of(Engine& engine, const Logits& record) const {
    ForwardRun run(engine.parameters(), {.rows = {engine.options().capacity}, .backend = engine.options().backend},
                   [&](Tape& tape) { return record(engine.model(), tape); });
    Ledger ledger;
    run.forward(steps_[0].micro_batches[0], ledger);
    std::vector<float> logits;
    run.read(logits);
    return logits;
  }

  std::vector<StepBatch> steps_;
};

}  // namespace brisk::testing
