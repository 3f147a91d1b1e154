#include <gtest/gtest.h>

#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"

namespace brisk {
namespace {

using test::expect_fix;
using test::finds;
using test::first_finding;
using test::healthy_readings_on_gpu;

TEST(LaunchBound, ComputesTwiceTheRowsInTheSameLaunches) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.kernels_per_step = 20'000;
  readings.stretch.gpu.mean_kernel_seconds = 2e-6;
  expect_fix(first_finding(readings, "launch_bound", 1 / (1 - 0.96 * 0.4 * 0.5)), "training.batch_size", "64");
  readings.stretch.gpu.mean_kernel_seconds = 5e-6;
  EXPECT_FALSE(finds(readings, "launch_bound"));
  // Where it was measured, the curve says how many rows are enough.
  readings.stretch.gpu.mean_kernel_seconds = 2e-6;
  const double own =
      static_cast<double>(readings.stretch.sequences) / static_cast<double>(readings.stretch.micro_batches);
  readings.batch_curve = {{own, 1000}, {4 * own, 3900}, {8 * own, 4000}};
  expect_fix(first_finding(readings, "launch_bound", 1 / (1 - 0.96 * (1 - 1 / 3.9))), "training.batch_size", "128");
  EXPECT_FALSE(finds(readings, "batch_size")) << "one name for one thing";
}

TEST(GpuGaps, AreTimeWithoutAKernel) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.idle_share = 0.2;
  first_finding(readings, "gpu_gaps", 1 / (1 - 0.96 * 0.2));
  readings.stretch.gpu.idle_share = 0.04;
  EXPECT_FALSE(finds(readings, "gpu_gaps"));
}

TEST(GpuCopies, AreNotOverlapped) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.copy_share = 0.1;
  first_finding(readings, "gpu_copies", 1 / (1 - 0.96 * 0.1));
  readings.stretch.gpu.copy_share = 0.02;
  EXPECT_FALSE(finds(readings, "gpu_copies"));
}

TEST(NoTensorCores, ByTheFormatThatHasThem) {
  Readings readings = healthy_readings_on_gpu();
  readings.model.precision = "fp32";
  readings.stretch.gpu.tensor_core_share = 0;
  expect_fix(first_finding(readings, "no_tensor_cores", 1 / (1 - 0.96 * 0.78 * (1 - 1 / 14.0))), "training.precision",
             "\"bf16\"");
  EXPECT_FALSE(finds(readings, "precision")) << "one name for one thing";
  readings.stretch.gpu.tensor_core_share = -1;  // not known
  EXPECT_FALSE(finds(readings, "no_tensor_cores"));
  EXPECT_TRUE(finds(readings, "precision"));
}

TEST(GpuThrottled, ByTheClocksThatAreMissing) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.throttled = {{"power cap", 0.1}, {"thermal", 0.5}};
  readings.stretch.gpu.sm_mhz = 990;
  const Finding finding = first_finding(readings, "gpu_throttled", 1 / (1 - 0.96 * 0.98 * 0.5 * 0.5));
  EXPECT_NE(finding.cause.find("thermal"), std::string::npos);
  readings.stretch.gpu.throttled = {{"power cap", 0.9}};
  readings.stretch.gpu.sm_mhz = 1920;  // of 1980
  EXPECT_FALSE(finds(readings, "gpu_throttled")) << "a clock that is hardly lower costs hardly any time";
  readings.stretch.gpu.throttled = {{"thermal", 0.02}};
  EXPECT_FALSE(finds(readings, "gpu_throttled"));
}

}  // namespace
}  // namespace brisk
