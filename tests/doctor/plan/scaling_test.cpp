#include "doctor/plan/scaling.h"

#include <gtest/gtest.h>

#include "doctor/plan/made_up_sizes.h"

namespace brisk {
namespace {

using test::made_up_machine;
using test::made_up_size;
using test::made_up_times;

TEST(ScaledToModel, TwiceTheLayersTakesTwiceTheLayersTime) {
  JobSize deeper = made_up_size();
  deeper.layers = 8;
  for (ComponentReadings& component : deeper.components) {
    if (!component.name.starts_with("head")) component.flop_per_token *= 2;
  }
  deeper.update_bytes *= 2;
  const StepTimes times = made_up_times(), scaled = scaled_to_model(times, made_up_size(), deeper, made_up_machine());
  EXPECT_DOUBLE_EQ(scaled.linear, 2 * times.linear);
  EXPECT_DOUBLE_EQ(scaled.attention, 2 * times.attention);
  EXPECT_DOUBLE_EQ(scaled.head, times.head);
  EXPECT_DOUBLE_EQ(scaled.rows, times.rows * 9 / 5);  // the embedding is not in the layers
  EXPECT_DOUBLE_EQ(scaled.update, 2 * times.update);
}

TEST(ScaledToModel, MuonsProductsAreInTheUpdate) {
  JobSize plain = made_up_size(), muon = plain;
  muon.update_flop = 100e9 * plain.update_bytes / 10e9;  // as long as its bytes
  EXPECT_DOUBLE_EQ(scaled_to_model(made_up_times(), plain, muon, made_up_machine()).update, 2 * made_up_times().update);
}

TEST(ScaledToMachine, EachPartByItsRate) {
  MachineRates there = made_up_machine();
  there.fp32_products *= 4;
  there.fp32_peak *= 2;
  there.copy_gb_per_second *= 5;
  const StepTimes times = made_up_times();
  const StepTimes scaled = scaled_to_machine(times, made_up_size(), made_up_machine(), there, "fp32");
  EXPECT_DOUBLE_EQ(scaled.linear, times.linear / 4);
  EXPECT_DOUBLE_EQ(scaled.head, times.head / 4);
  EXPECT_DOUBLE_EQ(scaled.rows, times.rows / 2);
  EXPECT_DOUBLE_EQ(scaled.update, times.update / 5);
}

TEST(ScaledToMachine, TheSameMachineChangesNothing) {
  const StepTimes times = made_up_times();
  const StepTimes same = scaled_to_machine(times, made_up_size(), made_up_machine(), made_up_machine(), "fp32");
  EXPECT_DOUBLE_EQ(same.step_seconds(1000), times.step_seconds(1000));
}

TEST(ScaledToMachine, AnotherNumberFormatCounts) {
  const StepTimes times = made_up_times();
  const StepTimes there = scaled_to_machine(times, made_up_size(), made_up_machine(), made_up_machine(), "bf16");
  EXPECT_DOUBLE_EQ(there.linear, times.linear / 2);
  EXPECT_EQ(there.precision, "bf16");
}

TEST(PrecisionOn, AutoIsTheFasterProduct) {
  MachineRates machine = made_up_machine();
  EXPECT_EQ(precision_on(machine, "auto"), "bf16");
  EXPECT_EQ(precision_on(machine, "fp32"), "fp32");
  machine.bf16_products = 0;
  EXPECT_EQ(precision_on(machine, "auto"), "fp32");
  EXPECT_EQ(precision_on(machine, "bf16"), "fp32");
}

TEST(NearestTo, WidthComesBeforeDepth) {
  std::vector<TimedSize> timed;
  for (const auto& [layers, width] : {std::pair(2, 128), std::pair(2, 512), std::pair(12, 512)}) {
    JobSize size = made_up_size();
    size.layers = layers;
    size.width = width;
    timed.push_back({size, made_up_times(), ""});
  }
  EXPECT_EQ(nearest_to(timed, 768, 12).size.layers, 12);
  EXPECT_EQ(nearest_to(timed, 128, 12).size.width, 128);
}

}  // namespace
}  // namespace brisk
