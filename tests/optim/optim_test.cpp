// Schedules, AdamW and Muon against their definitions, worked out in double.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "ops/optimizer/step_state.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "support/numeric.h"
#include "support/optimizer_step.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

TEST(Schedule, WarmsUpLinearlyFromNothingToThePeak) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine}) {
    const Schedule schedule{.kind = kind, .rate = 0.8, .warmup_steps = 4, .total_steps = 20};
    EXPECT_DOUBLE_EQ(schedule.at(1), 0.2);
    EXPECT_DOUBLE_EQ(schedule.at(2), 0.4);
    EXPECT_DOUBLE_EQ(schedule.at(4), 0.8);
    EXPECT_DOUBLE_EQ(schedule.at(5), 0.8);
  }
}

TEST(Schedule, WithoutWarmUpStartsAtThePeak) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine}) {
    EXPECT_DOUBLE_EQ((Schedule{.kind = kind, .rate = 0.5, .total_steps = 10}.at(1)), 0.5);
  }
}

TEST(Schedule, ConstantStaysAtThePeak) {
  const Schedule schedule{.kind = ScheduleKind::constant, .rate = 0.5, .total_steps = 10};
  for (const int64_t step : {2, 9, 10, 100}) EXPECT_DOUBLE_EQ(schedule.at(step), 0.5);
}

TEST(Schedule, LinearFallsByEqualAmountsTowardsTheFinalRate) {
  const Schedule schedule{
      .kind = ScheduleKind::linear, .rate = 1.0, .final_ratio = 0.1, .warmup_steps = 2, .total_steps = 12};
  for (int64_t step = 3; step <= 12; ++step) {
    EXPECT_NEAR(schedule.at(step), 1.0 - 0.09 * static_cast<double>(step - 3), 1e-12);
  }
  EXPECT_NEAR(schedule.at(13), 0.1, 1e-12);
  EXPECT_NEAR(schedule.at(1000), 0.1, 1e-12);  // and never below it
}

TEST(Schedule, CosineIsHalfWayInTheMiddleAndFlatAtBothEnds) {
  const Schedule schedule{
      .kind = ScheduleKind::cosine, .rate = 2.0, .final_ratio = 0.2, .warmup_steps = 0, .total_steps = 100};
  EXPECT_NEAR(schedule.at(51), 1.2, 1e-12);
  EXPECT_NEAR(schedule.at(26), 0.4 + 1.6 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(schedule.at(101), 0.4, 1e-12);
  EXPECT_NEAR(schedule.at(500), 0.4, 1e-12);
  EXPECT_LT(schedule.at(1) - schedule.at(2), 0.001);
  for (int64_t step = 1; step < 100; ++step) EXPECT_GT(schedule.at(step), schedule.at(step + 1));
}

TEST(Schedule, WsdIsConstantAndThenFallsLinearlyOverItsShareOfAllSteps) {
  const Schedule schedule{.kind = ScheduleKind::wsd,
                          .rate = 2.0,
                          .final_ratio = 0.5,
                          .decay_ratio = 0.4,
                          .warmup_steps = 10,
                          .total_steps = 100};
  EXPECT_DOUBLE_EQ(schedule.at(5), 1.0);
  for (const int64_t step : {10, 11, 40, 60, 61}) EXPECT_DOUBLE_EQ(schedule.at(step), 2.0) << step;
  for (int64_t step = 61; step <= 100; ++step) {
    EXPECT_NEAR(schedule.at(step), 2.0 - static_cast<double>(step - 61) / 40, 1e-12) << step;
  }
  EXPECT_NEAR(schedule.at(101), 1.0, 1e-12);
  EXPECT_NEAR(schedule.at(1000), 1.0, 1e-12);
}

TEST(Schedule, WsdThatDecaysAllTheTimeIsLinear) {
  for (const int64_t warm_up : {0, 7}) {
    const Schedule wsd{
        .kind = ScheduleKind::wsd, .rate = 1.0, .decay_ratio = 1.0, .warmup_steps = warm_up, .total_steps = 30};
    Schedule linear = wsd;
    linear.kind = ScheduleKind::linear;
    for (int64_t step = 1; step <= 40; ++step) EXPECT_DOUBLE_EQ(wsd.at(step), linear.at(step)) << step;
  }
}

TEST(Schedule, AWarmUpLongerThanTheRunNeverReachesThePeak) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .rate = 1.0, .warmup_steps = 10, .total_steps = 5};
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.5);
  EXPECT_TRUE(std::isfinite(schedule.at(11)));
}

// A store of a matrix that decays, a bias that does not, and a matrix again, all of odd sizes.
class AdamWTest : public ::testing::Test {
 protected:
  void make(DType type, Device& device = cpu_device()) {
    store_ = std::make_unique<ParameterStore>();
    store_->add({"a.weight", 7, 5, true, true, {Initial::Kind::normal, 1.0}, {}});
    store_->add({"a.bias", 1, 7, false, false, {Initial::Kind::normal, 1.0}, {}});
    store_->add({"b.weight", 3, 11, true, true, {Initial::Kind::normal, 1.0}, {}});
    store_->allocate(device, {}, type, ParameterStore::Purpose::training);
    store_->initialise(1);
  }
  void put_gradients(uint64_t seed) {
    for (const auto& parameter : store_->all()) {
      std::vector<float> gradient(static_cast<size_t>(parameter->count()));
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<float>(
            random_normal(random_key({seed, static_cast<uint64_t>(parameter->index)}), static_cast<uint64_t>(i)));
      }
      put_values(store_->device(), parameter->gradient, gradient);
    }
  }
  std::vector<float> values(const Tensor& tensor) const { return values_of(store_->device(), tensor); }

  std::unique_ptr<ParameterStore> store_;
};

TEST_F(AdamWTest, FollowsItsDefinitionOverSeveralSteps) {
  const AdamWOptions options{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.3};
  for_each_isa([&](Isa) {
    make(DType::f32);
    AdamW adamw(*store_, options);
    std::vector<std::vector<double>> p(3), m(3), v(3);
    for (size_t k = 0; k < 3; ++k) {
      for (const float value : values(store_->all()[k]->master)) p[k].push_back(value);
      m[k].assign(p[k].size(), 0.0);
      v[k].assign(p[k].size(), 0.0);
    }
    for (int64_t step = 1; step <= 5; ++step) {
      put_gradients(static_cast<uint64_t>(step));
      const double rate = 0.01 * static_cast<double>(step), scale = 0.5;
      OptimizerStep(*store_, adamw).run(step, rate, 1 / scale);
      for (size_t k = 0; k < 3; ++k) {
        const std::vector<float> gradient = values(store_->all()[k]->gradient);
        const double decay = store_->all()[k]->spec.decays ? 0.3 : 0.0;
        for (size_t i = 0; i < p[k].size(); ++i) {
          const double g = scale * gradient[i];
          m[k][i] = 0.8 * m[k][i] + 0.2 * g;
          v[k][i] = 0.9 * v[k][i] + 0.1 * g * g;
          const double mean = m[k][i] / (1 - std::pow(0.8, step)), square = v[k][i] / (1 - std::pow(0.9, step));
          p[k][i] -= rate * (decay * p[k][i] + mean / (std::sqrt(square) + 1e-3));
        }
      }
    }
    for (size_t k = 0; k < 3; ++k) {
      const std::vector<float> expected(p[k].begin(), p[k].end());
      EXPECT_LE(distance(values(store_->all()[k]->master), expected), 1e-6) << store_->all()[k]->spec.name;
    }
  });
}

TEST_F(AdamWTest, DecaysMatricesAndNothingElse) {
  make(DType::f32);  // the gradient is zero: decay is all there is
  std::vector<std::vector<float>> before;
  for (const auto& parameter : store_->all()) before.push_back(values(parameter->master));
  AdamW adamw(*store_, {.weight_decay = 0.5});
  OptimizerStep(*store_, adamw).run(1, 0.1);
  for (size_t k = 0; k < 3; ++k) {
    const std::vector<float> after = values(store_->all()[k]->master);
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_FLOAT_EQ(after[i], store_->all()[k]->spec.decays ? 0.95f * before[k][i] : before[k][i]);
    }
  }
}

TEST_F(AdamWTest, RefreshesTheBf16CopiesOfTheMasters) {
  make(DType::bf16, guarded_device());
  put_gradients(1);
  AdamW adamw(*store_, {});
  OptimizerStep(*store_, adamw).run(1, 0.1);
  const std::vector<float> masters = values(store_->flat_master());
  std::vector<bf16_t> copies(masters.size());
  store_->device().copy_out(copies.data(), store_->flat_copy().data, store_->flat_count() * size_of(DType::bf16));
  for (size_t i = 0; i < masters.size(); ++i) EXPECT_EQ(copies[i].bits, to_bf16(masters[i]).bits) << i;
}

TEST_F(AdamWTest, NormIsOfTheWholeGradient) {
  for_each_isa([&](Isa) {
    make(DType::f32, guarded_device());
    put_gradients(4);
    double sum = 0;
    for (const auto& parameter : store_->all()) {
      for (const float value : values(parameter->gradient)) sum += static_cast<double>(value) * value;
    }
    AdamW adamw(*store_, {});
    EXPECT_NEAR(OptimizerStep(*store_, adamw).run(1, 0.1), std::sqrt(sum), 1e-6 * std::sqrt(sum));
  });
}

// A packed weight of two parts between a table and a bias that AdamW updates.
TEST_F(AdamWTest, LeavesHiddenMatricesToMuonWhichTakesTheirPartsApart) {
  for_each_isa([&](Isa) {
    const auto store_of = [](const std::vector<int64_t>& parts) {
      auto store = std::make_unique<ParameterStore>();
      const Initial normal{Initial::Kind::normal, 1.0};
      store->add({"table", 7, 8, true, true, normal, {}});
      store->add({"packed", 12, 8, true, true, normal, parts, true});
      store->add({"bias", 1, 12, false, false, normal, {}});
      store->allocate(guarded_device(), {}, DType::bf16, ParameterStore::Purpose::training,
                      ParameterStore::Moments::one_of_hidden);
      store->initialise(1);
      return store;
    };
    store_ = store_of({8, 4});
    const std::vector<float> start = values(store_->flat_master());
    put_gradients(3);
    const std::vector<float> weight = values(store_->all()[1]->master);
    AdamW adamw(*store_, {}, {ParameterShard::Kind::not_hidden});
    OptimizerStep(*store_, adamw).run(1, 0.1, 2);
    EXPECT_EQ(values(store_->all()[1]->master), weight);
    const std::vector<float> table = values(store_->all()[0]->master), bias = values(store_->all()[2]->master);
    EXPECT_NE(table, std::vector<float>(start.begin(), start.begin() + 56));
    EXPECT_FALSE(store_->all()[1]->second_moment);

    Muon muon(*store_, {.rate_ratio = 2, .momentum = 0.9, .weight_decay = 0.3});
    OptimizerStep(*store_, muon).run(1, 0.1, 2);
    EXPECT_EQ(values(store_->all()[0]->master), table);
    EXPECT_EQ(values(store_->all()[2]->master), bias);
    const std::vector<float> got = values(store_->all()[1]->master), gradient = values(store_->all()[1]->gradient);
    for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 8}, {8, 4}}) {
      const size_t begin = static_cast<size_t>(first * 8), count = static_cast<size_t>(rows * 8);
      std::vector<float> p(weight.begin() + begin, weight.begin() + begin + count), m(count, 0.0f);
      const MuonMatrix part{p.data(), gradient.data() + begin, m.data(), nullptr, rows, 8};
      ref::muon_update({.matrices = {&part, 1}, .rate = 0.2f, .momentum = 0.9f, .decay = 0.3f, .gradient_scale = 0.5f});
      EXPECT_LE(distance(std::span(got).subspan(begin, count), p), 1e-2) << "rows from " << first;  // products in bf16
    }
    std::vector<bf16_t> copies(got.size());
    store_->device().copy_out(copies.data(), store_->all()[1]->compute.data, std::ssize(copies) * size_of(DType::bf16));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(copies[i].bits, to_bf16(got[i]).bits) << i;
  });
}

// Tables, a bias and two packed weights, as a model has them.
std::unique_ptr<ParameterStore> mixed_store(DType type) {
  auto store = std::make_unique<ParameterStore>();
  const Initial normal{Initial::Kind::normal, 1.0};
  store->add({"table", 9, 8, true, true, normal, {}});
  store->add({"first", 12, 8, true, true, normal, {8, 4}, true});
  store->add({"bias", 1, 20, false, false, normal, {}});
  store->add({"second", 8, 16, true, true, normal, {}, true});
  store->allocate(guarded_device(), {}, type, ParameterStore::Purpose::training,
                  ParameterStore::Moments::one_of_hidden);
  store->initialise(1);
  return store;
}

TEST_F(AdamWTest, AndMuonGiveTheSameBitsShardByShard) {
  const AdamWOptions adamw;
  const MuonOptions muon{.rate_ratio = 2};
  const auto train = [&](const std::vector<int64_t>& ends) {
    store_ = mixed_store(DType::bf16);
    std::vector<std::unique_ptr<Optimizer>> shards;
    int64_t begin = 0, state_bytes = 0;
    for (const int64_t end : ends) {
      shards.push_back(
          std::make_unique<AdamW>(*store_, adamw, ParameterShard{ParameterShard::Kind::not_hidden, begin, end}));
      shards.push_back(std::make_unique<Muon>(*store_, muon, ParameterShard{ParameterShard::Kind::all, begin, end}));
      begin = end;
    }
    for (const auto& shard : shards) state_bytes += shard->state_bytes();
    EXPECT_EQ(state_bytes, make_optimizer(*store_, adamw, muon)->state_bytes());
    OptimizerList all(std::move(shards));
    for (int64_t step = 1; step <= 3; ++step) {
      put_gradients(static_cast<uint64_t>(step));
      OptimizerStep(*store_, all, 1).run(step, 0.1);
    }
    return values(store_->flat_master());
  };
  const std::vector<float> whole = train({mixed_store(DType::bf16)->flat_count()});
  EXPECT_EQ(train({16, 112, 192, 240, 336}), whole);  // within the table, a packed weight, the bias and the last matrix
  store_ = mixed_store(DType::bf16);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(*store_, adamw, muon);
  for (int64_t step = 1; step <= 3; ++step) {
    put_gradients(static_cast<uint64_t>(step));
    OptimizerStep(*store_, *optimizer, 1).run(step, 0.1);
  }
  EXPECT_EQ(values(store_->flat_master()), whole);
}

TEST_F(AdamWTest, KeepsTwoMomentsAndMuonOneWhichIsKnownBeforeThereIsMemory) {
  ParameterStore store;
  store.add({.name = "table", .rows = 10, .cols = 8});
  store.add({.name = "hidden", .rows = 4, .cols = 8, .hidden = true});
  store.add({.name = "frozen", .rows = 100, .cols = 100, .trained = false});
  EXPECT_EQ(make_optimizer(store, {}, std::nullopt)->state_bytes(), 4 * 2 * (80 + 32));
  EXPECT_EQ(make_optimizer(store, {}, MuonOptions{})->state_bytes(), 4 * (2 * 80 + 32));
}

TEST_F(AdamWTest, ChangesNothingInAStepThatIsNotApplied) {
  store_ = mixed_store(DType::bf16);
  put_gradients(1);
  const std::vector<float> before = values(store_->flat_master());
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(*store_, {}, MuonOptions{});
  StepState state(store_->device());
  StepNumbers settings{.norm_limit = 1e-6};
  optimizer->set_rates(1, 0.1, settings);
  state.begin_update(settings);
  state.measure(store_->flat_gradient());
  state.decide();
  optimizer->update(state.numbers());
  EXPECT_EQ(state.result().applied, 0);
  EXPECT_EQ(values(store_->flat_master()), before);
  EXPECT_EQ(values(store_->flat_first_moment()), std::vector<float>(before.size(), 0.0f));
}

// Through the engine: a gradient beyond max_grad_norm is shortened to it, one within is left alone.
TEST(Clipping, ShortensTheGradientToTheNormAllowed) {
  EngineOptions options = tiny_options(gpt_shape());
  const std::vector<StepBatch> steps = packed_steps(tiny_corpus(), 1);
  const auto first_moment = [&](double max_grad_norm, double& norm) {
    options.max_grad_norm = max_grad_norm;
    Engine engine(options);
    engine.initialise(1);
    Ledger ledger;
    norm = engine.train_step(steps[0], 1, 1e-3, ledger).gradient_norm;
    return values_of(cpu_device(), engine.parameters().flat_first_moment());
  };
  const auto length = [](const std::vector<float>& values) {
    return distance(values, std::vector<float>(values.size(), 0.0f));
  };
  double norm = 0;
  const double free = length(first_moment(0, norm));
  EXPECT_NEAR(free, 0.1 * norm, 1e-5 * norm);  // 1 - beta1 of the gradient
  EXPECT_NEAR(length(first_moment(0.25 * norm, norm)), 0.25 * free, 1e-5 * free);
  EXPECT_NEAR(length(first_moment(4 * norm, norm)), free, 1e-5 * free);
}

}  // namespace
}  // namespace brisk
