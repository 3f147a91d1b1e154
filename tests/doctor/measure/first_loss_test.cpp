#include "doctor/measure/first_loss.h"

#include <gtest/gtest.h>

#include <cmath>

namespace brisk {
namespace {

ParameterSpec table(int64_t rows, int64_t cols, double deviation) {
  return {.name = "embedding.weight",
          .rows = rows,
          .cols = cols,
          .multiplies = true,
          .initial = {.kind = Initial::Kind::normal, .deviation = deviation}};
}

TEST(FirstLoss, IsThatOfAGuessWhereLogitsStartNearZero) {
  ParameterStore store;
  store.add(table(600, 64, 0.02));
  store.add({.name = "up.weight",
             .rows = 4096,
             .cols = 1024,
             .multiplies = true,
             .initial = {.kind = Initial::Kind::normal, .deviation = 0.05},
             .hidden = true});
  EXPECT_NEAR(first_loss_of_a_new_model(store, 600), std::log(600.0), 1e-12);
}

TEST(FirstLoss, IsNotKnownOfATableWhoseLogitsStartWithUnitVariance) {
  ParameterStore store;
  store.add(table(600, 64, 1 / 8.0));
  EXPECT_LT(first_loss_of_a_new_model(store, 600), 0);
}

}  // namespace
}  // namespace brisk
