#include "tensor/parameter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace brisk {
namespace {

std::vector<float> values_of(const ParameterStore& store, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows * tensor.cols));
  store.device().copy_out(values.data(), tensor.data, tensor.rows * tensor.cols * size_of(DType::f32));
  return values;
}

ParameterSpec spec(const std::string& name, int64_t rows, int64_t cols, Initial initial, bool multiplies = false) {
  return {name, rows, cols, false, multiplies, initial, {}};
}

const Initial kNormal{Initial::Kind::normal, 0.02};

TEST(ParameterStore, DrawsDependOnTheSeedAndTheNameAlone) {
  ParameterStore a, b;
  a.add(spec("first", 40, 50, kNormal));
  a.add(spec("second", 40, 50, kNormal));
  b.add(spec("second", 40, 50, kNormal));
  for (ParameterStore* store : {&a, &b}) {
    store->allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::inference);
    store->initialise(3);
  }
  const std::vector<float> drawn = values_of(a, a.find("second")->master);
  EXPECT_EQ(values_of(b, b.find("second")->master), drawn);
  EXPECT_NE(values_of(a, a.find("first")->master), drawn);
  b.initialise(4);
  EXPECT_NE(values_of(b, b.find("second")->master), drawn);
  double mean = 0, square = 0;
  for (const float value : drawn) {
    mean += value / 2000.0;
    square += static_cast<double>(value) * value / 2000.0;
  }
  EXPECT_NEAR(mean, 0, 0.002);
  EXPECT_NEAR(std::sqrt(square), 0.02, 0.002);
}

TEST(ParameterStore, UniformDrawsFillTheirRangeAroundTheMean) {
  ParameterStore store;
  const Parameter* level = store.add(spec("level", 40, 50, {Initial::Kind::uniform, 0.5, 2}));
  const Parameter* around = store.add(spec("around", 40, 50, {Initial::Kind::normal, 0.1, -1}));
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(3);
  double mean = 0, least = 9, most = -9, other_mean = 0;
  for (const float value : values_of(store, level->master)) {
    mean += value / 2000.0;
    least = std::min<double>(least, value);
    most = std::max<double>(most, value);
  }
  for (const float value : values_of(store, around->master)) other_mean += value / 2000.0;
  EXPECT_NEAR(mean, 2, 0.03);
  EXPECT_GE(least, 1.5);
  EXPECT_LT(least, 1.51);
  EXPECT_LE(most, 2.5);
  EXPECT_GT(most, 2.49);
  EXPECT_NEAR(other_mean, -1, 0.01);
}

TEST(ParameterStore, OnesAndZerosAreWhatTheySay) {
  ParameterStore store;
  const Parameter* gain = store.add(spec("gain", 1, 5, {Initial::Kind::ones}));
  const Parameter* bias = store.add(spec("bias", 1, 5, {Initial::Kind::zeros}));
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(1);
  EXPECT_EQ(values_of(store, gain->master), std::vector<float>(5, 1.0f));
  EXPECT_EQ(values_of(store, bias->master), std::vector<float>(5, 0.0f));
}

TEST(ParameterStore, FlatArraysFollowTheOrderGivenOnCacheLines) {
  ParameterStore store;
  Parameter* a = store.add(spec("a", 3, 5, kNormal, true));
  Parameter* b = store.add(spec("b", 1, 7, kNormal));
  Parameter* c = store.add(spec("c", 2, 2, kNormal, true));
  store.allocate(guarded_device(), {c, b}, DType::bf16, ParameterStore::Purpose::training);
  EXPECT_EQ(store.flat_order(), (std::vector<Parameter*>{c, b, a}));
  EXPECT_EQ(store.count(), 15 + 7 + 4);
  const char* base = static_cast<const char*>(store.flat_master().data);
  int64_t end = 0;
  for (const Parameter* parameter : store.flat_order()) {
    EXPECT_GE(parameter->offset, end);
    EXPECT_EQ(parameter->offset % 16, 0);
    EXPECT_EQ(static_cast<const char*>(parameter->master.data), base + 4 * parameter->offset);
    end = parameter->offset + parameter->count();
  }
  EXPECT_GE(store.flat_count(), end);
  // Matrices have a bf16 copy to multiply with; the rest is read as it is.
  EXPECT_EQ(a->compute.type, DType::bf16);
  EXPECT_EQ(b->compute.data, b->master.data);
  EXPECT_TRUE(store.flat_second_moment());
}

TEST(ParameterStore, HoldsOneMomentOfHiddenMatricesWhereAsked) {
  ParameterStore store;
  const Parameter* a = store.add(spec("a", 3, 5, kNormal, true));
  ParameterSpec hidden_spec = spec("hidden", 4, 16, kNormal, true);
  hidden_spec.hidden = true;
  const Parameter* hidden = store.add(hidden_spec);
  const Parameter* c = store.add(spec("c", 1, 7, kNormal));
  const int64_t two = store.bytes(DType::f32, ParameterStore::Purpose::training);
  EXPECT_EQ(two, 16 * (16 + 64 + 16));
  EXPECT_EQ(store.bytes(DType::f32, ParameterStore::Purpose::training, ParameterStore::Moments::one_of_hidden),
            two - 4 * 64);
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::training,
                 ParameterStore::Moments::one_of_hidden);
  EXPECT_TRUE(hidden->first_moment);
  EXPECT_FALSE(hidden->second_moment);
  EXPECT_EQ(store.flat_second_moment().cols, 32);
  EXPECT_EQ(a->second_moment.data, store.flat_second_moment().data);
  EXPECT_EQ(c->second_moment.f32(), store.flat_second_moment().f32() + 16);
  EXPECT_EQ(c->first_moment.f32(), store.flat_first_moment().f32() + c->offset);
}

TEST(ParameterStore, FrozenParametersComeLastAndHoldNothingButTheirValues) {
  ParameterStore store;
  ParameterSpec frozen_spec = spec("frozen", 4, 16, kNormal, true);
  frozen_spec.hidden = true;
  frozen_spec.trained = false;
  const Parameter* frozen = store.add(frozen_spec);
  ParameterSpec hidden_spec = spec("hidden", 2, 16, kNormal, true);
  hidden_spec.hidden = true;
  const Parameter* hidden = store.add(hidden_spec);
  const Parameter* c = store.add(spec("c", 1, 16, kNormal));
  EXPECT_EQ(store.count(), 64 + 32 + 16);
  EXPECT_EQ(store.trained_count(), 32 + 16);
  EXPECT_EQ(store.bytes(DType::bf16, ParameterStore::Purpose::training, ParameterStore::Moments::one_of_hidden),
            64 * (4 + 2) + 32 * (12 + 2) + 16 * (16 + 2));
  store.allocate(guarded_device(), {}, DType::bf16, ParameterStore::Purpose::training,
                 ParameterStore::Moments::one_of_hidden);
  EXPECT_EQ(store.flat_order().back(), frozen);
  EXPECT_EQ(store.flat_master().cols, 112);
  EXPECT_EQ(store.flat_gradient().cols, 48);
  EXPECT_EQ(store.flat_first_moment().cols, 48);
  EXPECT_EQ(store.flat_second_moment().cols, 16);
  EXPECT_FALSE(frozen->gradient);
  EXPECT_FALSE(frozen->first_moment);
  EXPECT_FALSE(frozen->second_moment);
  EXPECT_EQ(frozen->compute.type, DType::bf16);
  EXPECT_TRUE(hidden->first_moment);
  EXPECT_EQ(c->second_moment.data, store.flat_second_moment().data);
}

TEST(ParameterStore, InferenceHoldsNoGradientsAndNoMoments) {
  ParameterStore store;
  const Parameter* a = store.add(spec("a", 3, 5, kNormal, true));
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  EXPECT_FALSE(store.is_training());
  EXPECT_FALSE(a->gradient);
  EXPECT_FALSE(store.flat_gradient());
  EXPECT_FALSE(store.flat_first_moment());
  EXPECT_EQ(a->compute.data, a->master.data);
}

TEST(ParameterStore, FindsByNameAndRefusesANameTwice) {
  ParameterStore store;
  const Parameter* a = store.add(spec("a", 1, 1, kNormal));
  EXPECT_EQ(store.find("a"), a);
  EXPECT_EQ(store.find("b"), nullptr);
  EXPECT_THROW(store.add(spec("a", 2, 2, kNormal)), InternalError);
}

// Of two processes, each with the moments of its half.
TEST(ParameterStore, HasTheMomentsOfARangeAtTheirPlaces) {
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, 48), {48, 160}, {64, 64}, {40, 100}, {0, 160}}) {
    ParameterStore store;
    Parameter* first = store.add({.name = "first", .rows = 4, .cols = 8});                     // [0, 32)
    Parameter* hidden = store.add({.name = "hidden", .rows = 4, .cols = 16, .hidden = true});  // [32, 96), one moment
    Parameter* last = store.add({.name = "last", .rows = 1, .cols = 64});                      // [96, 160)
    store.allocate(cpu_device(), {first, hidden, last}, DType::f32, ParameterStore::Purpose::training,
                   ParameterStore::Moments::one_of_hidden, ParameterStore::Masters::all, false);
    EXPECT_FALSE(first->first_moment);
    store.allocate_moments(begin, end);
    EXPECT_EQ(store.flat_first_moment().cols, 160);
    EXPECT_EQ(store.flat_second_moment().cols, 96);
    for (const Parameter* parameter : {first, hidden, last}) {
      EXPECT_EQ(parameter->first_moment.f32() - store.flat_first_moment().f32(), parameter->offset);
      for (int64_t i = 0; i < parameter->count(); ++i) {
        const int64_t at = parameter->offset + i;
        if (at < begin || at >= end) continue;
        parameter->first_moment.f32()[i] = static_cast<float>(at);
        if (parameter->second_moment) parameter->second_moment.f32()[i] = -static_cast<float>(at);
      }
    }
    EXPECT_FALSE(hidden->second_moment);
    EXPECT_EQ(last->second_moment.f32() - store.flat_second_moment().f32(), 32);
    for (int64_t at = begin; at < end; ++at) ASSERT_EQ(store.flat_first_moment().f32()[at], static_cast<float>(at));
    for (int64_t at = std::max<int64_t>(begin, 96); at < end; ++at)
      ASSERT_EQ(store.flat_second_moment().f32()[at - 64], -static_cast<float>(at));
  }
}

}  // namespace
}  // namespace brisk
