// The tape and its plan on graphs drawn at random, with ops simple enough to differentiate by hand: whatever shares
// memory, is added in place or is recomputed, gradients are those of the textbook.
#include "tensor/program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace brisk {
namespace {

constexpr int64_t kRows = 6, kCols = 5;

enum class Kind : uint8_t {
  source,    // y = p t, where t is the row's token
  product,   // y = p a b;        backward reads a and b
  residual,  // y = a + p b;      backward reads b; a's gradient is y's
  curve,     // y = tanh(a + p);  backward reads y alone
  exclusive  // y = p a b, whose backward can only overwrite
};

struct Counts {
  int forward = 0, backward = 0;
};

// p: [1, C], broadcast over rows.
class SimpleOp final : public Op {
 public:
  SimpleOp(Kind kind, Counts* counts) : kind_(kind), counts_(counts) {}
  OpFamily family() const override { return OpFamily::elementwise; }
  std::string name() const override { return "simple"; }
  bool overwrites_gradients() const override { return kind_ == Kind::exclusive; }
  void add_gradient(const OpRun&, const Tensor& contribution, const Tensor& sum) const override {
    for (int64_t i = 0; i < sum.rows * kCols; ++i) sum.f32()[i] += contribution.f32()[i];
  }

  void forward(OpRun& run) const override {
    ++counts_->forward;
    const float* p = run.master(0).f32();
    const Tensor y = run.output(0);
    for (int64_t r = 0; r < y.rows; ++r) {
      for (int64_t c = 0; c < kCols; ++c) {
        const int64_t i = r * kCols + c;
        float& out = y.f32()[i];
        switch (kind_) {
          case Kind::source: out = p[c] * static_cast<float>(run.set(0).tokens[r]); break;
          case Kind::exclusive:
          case Kind::product: out = p[c] * run.input(0).f32()[i] * run.input(1).f32()[i]; break;
          case Kind::residual: out = run.input(0).f32()[i] + p[c] * run.input(1).f32()[i]; break;
          case Kind::curve: out = std::tanh(run.input(0).f32()[i] + p[c]); break;
        }
      }
    }
  }

  void backward(OpRun& run) const override {
    ++counts_->backward;
    const float* p = run.master(0).f32();
    const Tensor dy = run.output_gradient(0);
    // Inputs before the parameter, so that an input's gradient written over dy while it is still read is seen.
    for (int k = kind_ == Kind::source ? 2 : 0; k < (kind_ == Kind::curve ? 1 : 2); ++k) {
      const Tensor dx = run.input_gradient(k);
      if (!dx) continue;
      EXPECT_FALSE(kind_ == Kind::exclusive && run.input_gradient_adds(k));
      for (int64_t i = 0; i < dy.rows * kCols; ++i) {
        float slope = 1;  // of y by this input
        if (kind_ == Kind::product || kind_ == Kind::exclusive) slope = p[i % kCols] * run.input(1 - k).f32()[i];
        if (kind_ == Kind::residual && k == 1) slope = p[i % kCols];
        if (kind_ == Kind::curve) slope = 1 - run.output(0).f32()[i] * run.output(0).f32()[i];
        dx.f32()[i] = (run.input_gradient_adds(k) ? dx.f32()[i] : 0.0f) + dy.f32()[i] * slope;
      }
    }
    std::vector<float> dp(kCols);
    for (int64_t i = 0; i < dy.rows * kCols; ++i) {
      float slope = 0;  // of y by the parameter
      switch (kind_) {
        case Kind::source: slope = static_cast<float>(run.set(0).tokens[i / kCols]); break;
        case Kind::exclusive:
        case Kind::product: slope = run.input(0).f32()[i] * run.input(1).f32()[i]; break;
        case Kind::residual: slope = run.input(1).f32()[i]; break;
        case Kind::curve: slope = 1 - run.output(0).f32()[i] * run.output(0).f32()[i]; break;
      }
      dp[static_cast<size_t>(i % kCols)] += dy.f32()[i] * slope;
    }
    float* out = run.parameter_gradient(0).f32();
    for (size_t c = 0; c < kCols; ++c) out[c] = (run.parameter_gradient_adds(0) ? out[c] : 0.0f) + dp[c];
  }

 private:
  Kind kind_;
  Counts* counts_;
};

// scale * sum of squares / 2 of its inputs.
class SquareLoss final : public Op {
 public:
  explicit SquareLoss(int inputs) : inputs_(inputs) {}
  OpFamily family() const override { return OpFamily::loss; }
  std::string name() const override { return "square_loss"; }
  void forward(OpRun&) const override { FAIL() << "a loss runs in backward while training"; }
  void backward(OpRun& run) const override {
    float sum = 0;
    for (int k = 0; k < inputs_; ++k) {
      const Tensor x = run.input(k), dx = run.input_gradient(k);
      for (int64_t i = 0; i < x.rows * kCols; ++i) {
        sum += 0.5f * x.f32()[i] * x.f32()[i];
        dx.f32()[i] = (run.input_gradient_adds(k) ? dx.f32()[i] : 0.0f) + run.batch().loss_scale * x.f32()[i];
      }
    }
    run.output(0).f32()[0] = sum;
  }

 private:
  int inputs_;
};

// One op of a graph: what the tape records and what the textbook differentiates.
struct Step {
  Kind kind;
  int a, b;       // steps whose outputs it reads
  int parameter;  // shared by several steps at times, as tied weights are
  bool ends_layer;
};

struct Graph {
  std::vector<Step> steps;
  int parameters;
  std::vector<int> losses;  // steps that the loss reads
};

Graph random_graph(uint64_t seed) {
  uint64_t drawn = 0;
  const auto below = [&](int n) { return static_cast<int>(n * random_uniform(random_key({seed}), drawn++)); };
  Graph graph;
  const int count = 3 + below(18);
  graph.parameters = 1 + below(count);
  for (int s = 0; s < count; ++s) {
    Step step{};
    step.kind = s == 0 || below(12) == 0 ? Kind::source : static_cast<Kind>(1 + below(4));
    // Mostly the last few values, as in a model, and now and then the same one twice.
    step.a = s == 0 ? 0 : std::max(0, s - 1 - below(below(4) == 0 ? s : 2));
    step.b = s == 0 ? 0 : std::max(0, s - 1 - below(below(4) == 0 ? s : 3));
    step.parameter = below(graph.parameters);
    step.ends_layer = below(3) == 0;
    graph.steps.push_back(step);
  }
  graph.losses = {count - 1};
  if (below(3) == 0 && count > 4) graph.losses.push_back(below(count - 1));
  return graph;
}

std::vector<float> start_values(int parameter) {
  std::vector<float> values;
  for (uint64_t c = 0; c < kCols; ++c) {
    values.push_back(static_cast<float>(0.5 * random_normal(random_key({77, static_cast<uint64_t>(parameter)}), c)));
  }
  return values;
}

// Reverse mode in double, nothing shared.
std::vector<std::vector<double>> textbook_gradients(const Graph& graph, const std::vector<int32_t>& tokens,
                                                    double scale, double& loss) {
  const size_t n = tokens.size() * kCols;
  std::vector<std::vector<double>> y(graph.steps.size(), std::vector<double>(n)), dy = y;
  std::vector<std::vector<double>> dp(static_cast<size_t>(graph.parameters), std::vector<double>(kCols));
  const auto p = [&](const Step& step, size_t i) {
    return static_cast<double>(start_values(step.parameter)[i % kCols]);
  };
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    const Step& step = graph.steps[s];
    const auto &a = y[static_cast<size_t>(step.a)], &b = y[static_cast<size_t>(step.b)];
    for (size_t i = 0; i < n; ++i) {
      switch (step.kind) {
        case Kind::source: y[s][i] = p(step, i) * tokens[i / kCols]; break;
        case Kind::exclusive:
        case Kind::product: y[s][i] = p(step, i) * a[i] * b[i]; break;
        case Kind::residual: y[s][i] = a[i] + p(step, i) * b[i]; break;
        case Kind::curve: y[s][i] = std::tanh(a[i] + p(step, i)); break;
      }
    }
  }
  loss = 0;
  for (const int s : graph.losses) {
    for (size_t i = 0; i < n; ++i) {
      const double value = y[static_cast<size_t>(s)][i];
      loss += 0.5 * value * value;
      dy[static_cast<size_t>(s)][i] += scale * value;
    }
  }
  for (size_t s = graph.steps.size(); s-- > 0;) {
    const Step& step = graph.steps[s];
    const auto a = static_cast<size_t>(step.a), b = static_cast<size_t>(step.b);
    for (size_t i = 0; i < n; ++i) {
      const double g = dy[s][i];
      double slope = 0;
      switch (step.kind) {
        case Kind::source: slope = g * tokens[i / kCols]; break;
        case Kind::exclusive:
        case Kind::product:
          slope = g * y[a][i] * y[b][i];
          dy[a][i] += g * p(step, i) * y[b][i];
          dy[b][i] += g * p(step, i) * y[a][i];
          break;
        case Kind::residual:
          slope = g * y[b][i];
          dy[a][i] += g;
          dy[b][i] += g * p(step, i);
          break;
        case Kind::curve:
          slope = g * (1 - y[s][i] * y[s][i]);
          dy[a][i] += slope;
          break;
      }
      dp[static_cast<size_t>(step.parameter)][i % kCols] += slope;
    }
  }
  return dp;
}

// The graph on a tape, its parameters allocated, ready to run on the guarded device.
class RecordedGraph {
 public:
  RecordedGraph(const Graph& graph, int64_t checkpoint_every, int64_t capacity = kRows)
      : tape_({.rows = {{capacity, capacity, 1}}}) {
    for (int k = 0; k < graph.parameters; ++k) {
      parameters_.push_back(store_.add({.name = std::to_string(k), .rows = 1, .cols = kCols}));
    }
    std::vector<Value> outputs;
    for (const Step& step : graph.steps) {
      Node node;
      node.op = std::make_unique<SimpleOp>(step.kind, &counts_);
      const Value a = outputs.empty() ? Value{} : outputs[static_cast<size_t>(step.a)];
      const Value b = outputs.empty() ? Value{} : outputs[static_cast<size_t>(step.b)];
      if (step.kind == Kind::product || step.kind == Kind::exclusive) {
        node.inputs = {a, b};
        node.input_in_backward = {true, true};
      } else if (step.kind == Kind::residual) {
        node.inputs = {a, b};
        node.input_in_backward = {false, true};
        node.residual = 0;
      } else if (step.kind == Kind::curve) {
        node.inputs = {a};
        node.output_in_backward = {true};
      }
      outputs.push_back(tape_.add_value({.cols = kCols, .gradient = true}));
      node.outputs = {outputs.back()};
      node.parameters = {parameters_[static_cast<size_t>(step.parameter)]};
      tape_.record(std::move(node));
      if (step.ends_layer) tape_.end_layer();
    }
    Node loss;
    loss.op = std::make_unique<SquareLoss>(static_cast<int>(graph.losses.size()));
    for (const int s : graph.losses) loss.inputs.push_back(outputs[static_cast<size_t>(s)]);
    loss_ = tape_.add_value({.fixed_rows = 1, .cols = 1, .read_back = true});
    loss.outputs = {loss_};
    loss.is_loss = true;
    tape_.record(std::move(loss));

    program_ = std::make_unique<Program>(tape_, ProgramOptions{.checkpoint_every = checkpoint_every});
    store_.allocate(device(), program_->completion_order(), DType::f32, ParameterStore::Purpose::training);
    for (int k = 0; k < graph.parameters; ++k) {
      device().copy_in(parameters_[static_cast<size_t>(k)]->master.data, start_values(k).data(), kCols * 4);
    }
    program_->allocate(device());
    tokens_ = Buffer(device(), capacity * 4);
  }

  double run(const std::vector<int32_t>& tokens, bool first_of_step, float scale) {
    device().copy_in(tokens_.data(), tokens.data(), static_cast<int64_t>(tokens.size()) * 4);
    DeviceBatch batch;
    batch.sets.resize(1);
    batch.sets[0].rows.rows = static_cast<int64_t>(tokens.size());
    batch.sets[0].tokens = static_cast<const int32_t*>(tokens_.data());
    batch.first_of_step = first_of_step;
    batch.loss_scale = scale;
    Ledger ledger;
    program_->forward(batch, ledger);
    program_->backward(batch, ledger);
    float loss = 0;
    device().copy_out(&loss, program_->value(loss_, batch).data, 4);
    return loss;
  }

  std::vector<float> gradient(int parameter) {
    std::vector<float> values(kCols);
    device().copy_out(values.data(), parameters_[static_cast<size_t>(parameter)]->gradient.data, kCols * 4);
    return values;
  }
  const Program& program() const { return *program_; }
  const Counts& counts() const { return counts_; }
  const Parameter* parameter(int k) const { return parameters_[static_cast<size_t>(k)]; }

 private:
  static Device& device() { return guarded_device(); }
  Counts counts_;
  ParameterStore store_;
  std::vector<Parameter*> parameters_;
  Tape tape_;
  Value loss_;
  std::unique_ptr<Program> program_;
  Buffer tokens_;
};

const std::vector<int32_t> kTokens = {1, -1, 2, 0, -2, 1}, kFewTokens = {2, 1, -1};

void expect_gradients(RecordedGraph& recorded, const Graph& graph, const std::vector<std::vector<double>>& expected) {
  for (int k = 0; k < graph.parameters; ++k) {
    const std::vector<float> gradient = recorded.gradient(k);
    for (size_t c = 0; c < kCols; ++c) {
      const double exact = expected[static_cast<size_t>(k)][c];
      EXPECT_NEAR(gradient[c], exact, 1e-4 * (1 + std::fabs(exact))) << "parameter " << k << ", column " << c;
    }
  }
}

TEST(Program, GradientsOfRandomGraphsAreTheTextbooksHoweverMuchIsRecomputed) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph(seed);
    double loss = 0;
    const auto expected = textbook_gradients(graph, kTokens, 0.25, loss);
    for (const int64_t every : {0, 1, 2, 5}) {
      SCOPED_TRACE(every);
      RecordedGraph recorded(graph, every);
      for (int repeat = 0; repeat < 2; ++repeat) {  // what one run leaves behind does not disturb the next
        EXPECT_NEAR(recorded.run(kTokens, true, 0.25f), loss, 1e-4 * (1 + loss));
        expect_gradients(recorded, graph, expected);
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Program, MicroBatchesAfterTheFirstAddToTheGradients) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph(seed);
    double loss = 0;
    auto expected = textbook_gradients(graph, kTokens, 0.25, loss);
    const auto more = textbook_gradients(graph, kFewTokens, 0.25, loss);
    for (size_t k = 0; k < expected.size(); ++k) {
      for (size_t c = 0; c < kCols; ++c) expected[k][c] += more[k][c];
    }
    RecordedGraph recorded(graph, 2);
    recorded.run(kTokens, true, 1.0f);  // an earlier step: overwritten
    recorded.run(kTokens, true, 0.25f);
    recorded.run(kFewTokens, false, 0.25f);
    expect_gradients(recorded, graph, expected);
  }
}

TEST(Program, ASmallerMicroBatchGivesWhatAProgramPlannedForItGives) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Graph graph = random_graph(seed);
    RecordedGraph roomy(graph, 1, 1000), exact(graph, 1, 3);
    EXPECT_EQ(roomy.run(kFewTokens, true, 1.0f), exact.run(kFewTokens, true, 1.0f));
    for (int k = 0; k < graph.parameters; ++k) EXPECT_EQ(roomy.gradient(k), exact.gradient(k)) << "seed " << seed;
    EXPECT_GT(roomy.program().arena_bytes(), exact.program().arena_bytes());
  }
}

// A chain of `layers` layers of four ops each.
Graph chain(int layers) {
  Graph graph;
  for (int s = 0; s < 4 * layers; ++s) {
    graph.steps.push_back({s == 0 ? Kind::source : Kind::product, s - 1, s - 1, s, s % 4 == 3});
  }
  graph.parameters = 4 * layers;
  graph.losses = {4 * layers - 1};
  return graph;
}

TEST(Program, RecomputationTakesLessMemoryAndOneMoreForwardOfWhatBackwardReads) {
  const Graph graph = chain(6);
  RecordedGraph kept(graph, 0, 4096), recomputed(graph, 1, 4096), pairs(graph, 2, 4096);
  EXPECT_LT(recomputed.program().arena_bytes(), kept.program().arena_bytes() * 2 / 3);
  EXPECT_LT(pairs.program().arena_bytes(), kept.program().arena_bytes());
  for (RecordedGraph* graph_run : {&kept, &recomputed, &pairs}) graph_run->run(kTokens, true, 1.0f);
  EXPECT_EQ(kept.counts().forward, 24);
  // Of each layer's four outputs the last is read by the next layer, so it is kept; three are made again. Of pairs of
  // layers, seven of eight.
  EXPECT_EQ(recomputed.counts().forward, 24 + 6 * 3);
  EXPECT_EQ(pairs.counts().forward, 24 + 3 * 7);
  EXPECT_EQ(recomputed.counts().backward, 24);
}

TEST(Program, GradientsCompleteFromTheEndOfTheTapeAndTiedOnesAtTheirLastUse) {
  Graph graph = chain(1);  // parameters 0 1 2 3 in order
  graph.steps[3].parameter = 0;
  RecordedGraph recorded(graph, 0);
  const std::vector<Parameter*>& order = recorded.program().completion_order();
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[0], recorded.parameter(2));
  EXPECT_EQ(order[1], recorded.parameter(1));
  EXPECT_EQ(order[2], recorded.parameter(0));
}

TEST(Program, RefusesMoreRowsThanItWasPlannedFor) {
  RecordedGraph recorded(chain(1), 0, 4);
  EXPECT_THROW(recorded.run(kTokens, true, 1.0f), InternalError);
}

}  // namespace
}  // namespace brisk
