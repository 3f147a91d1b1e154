#include "base/gpu/gpu_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

namespace brisk {
namespace {

using std::chrono::milliseconds;

// Says one reading after the other, then the last again and again.
class ListedReadings final : public GpuSensor {
 public:
  ListedReadings(std::vector<GpuReading> readings, std::atomic<int>* count)
      : readings_(std::move(readings)), count_(count) {}
  GpuReading read() override {
    const int at = (*count_)++;
    return readings_[std::min<size_t>(static_cast<size_t>(at), readings_.size() - 1)];
  }

 private:
  std::vector<GpuReading> readings_;
  std::atomic<int>* count_;
};

void wait_for(const std::atomic<int>& count, int wanted) {
  for (int i = 0; i < 5000 && count < wanted; ++i) std::this_thread::sleep_for(milliseconds(1));
  ASSERT_GE(count, wanted);
}

TEST(GpuSensor, IsLeftOutQuietlyWhereThereIsNoLibrary) {
  EXPECT_EQ(open_gpu_sensor("0000:17:00.0", "libof-no-such-name.so.1"), nullptr);
}

TEST(GpuSensor, IsLeftOutWhereTheLibraryIsAnotherOne) {
  EXPECT_EQ(open_gpu_sensor("0000:17:00.0", "libm.so.6"), nullptr);
}

TEST(GpuSensor, ReadsTheGpuAtItsPlaceOnTheBus) {
  const auto sensor = open_gpu_sensor("0000:17:00.0", BRISK_FAKE_NVML);
  ASSERT_NE(sensor, nullptr);
  const GpuReading reading = sensor->read();
  EXPECT_DOUBLE_EQ(reading.busy_share, 0.87);
  EXPECT_DOUBLE_EQ(reading.watts, 400);
  EXPECT_EQ(reading.celsius, 61);
  EXPECT_EQ(reading.sm_mhz, 1965);
  EXPECT_EQ(reading.memory_mhz, 3201);
  EXPECT_EQ(reading.memory_used_bytes, 300);
  EXPECT_EQ(reading.memory_bytes, 1000);
  EXPECT_DOUBLE_EQ(reading.joules, 7050);
  EXPECT_EQ(reading.max_sm_mhz, 1980);
  EXPECT_DOUBLE_EQ(reading.watt_limit, 700);
  EXPECT_EQ(reading.lowered_by, GpuReading::power_cap);
}

TEST(GpuSensor, LeavesOutWhatAGpuDoesNotTell) {
  const auto sensor = open_gpu_sensor("0000:65:00.0", BRISK_FAKE_NVML);
  ASSERT_NE(sensor, nullptr);
  const GpuReading reading = sensor->read();
  EXPECT_DOUBLE_EQ(reading.busy_share, 0.12);
  EXPECT_LT(reading.watts, 0);
  EXPECT_LT(reading.joules, 0);
  EXPECT_LT(reading.watt_limit, 0);
  EXPECT_EQ(reading.lowered_by, GpuReading::thermal);
  EXPECT_EQ(format_gpu(reading), "12 % busy, 61 C");
}

TEST(GpuSensor, KnowsNoGpuThatIsNotThere) { EXPECT_EQ(open_gpu_sensor("0000:99:00.0", BRISK_FAKE_NVML), nullptr); }

TEST(GpuSensor, IsLeftOutWhereTheLibraryDoesNotStart) {
  setenv("BRISK_FAKE_NVML_INIT", "1", 1);
  EXPECT_EQ(open_gpu_sensor("0000:17:00.0", BRISK_FAKE_NVML), nullptr);
  unsetenv("BRISK_FAKE_NVML_INIT");
}

TEST(GpuWatch, KnowsNothingWithoutASensor) {
  GpuWatch watch(nullptr);
  EXPECT_FALSE(watch.latest().has_value());
  watch.begin();
  EXPECT_EQ(watch.summary().readings, 0);
  EXPECT_EQ(format_gpu(watch.summary()), "");
}

TEST(GpuWatch, SumsUpMeansMaximaAndEnergy) {
  std::atomic<int> count = 0;
  GpuWatch watch(
      std::make_unique<ListedReadings>(
          std::vector<GpuReading>{{.busy_share = 0.5, .watts = 100, .celsius = 40, .sm_mhz = 1000, .joules = 500},
                                  {.busy_share = 1.0, .watts = 300, .celsius = 60, .sm_mhz = 2000, .joules = 900},
                                  {.busy_share = 0.6, .watts = 200, .celsius = 50, .sm_mhz = 1800, .joules = 1100}},
          &count),
      milliseconds(3600000));
  wait_for(count, 1);
  while (!watch.latest()) std::this_thread::sleep_for(milliseconds(1));
  watch.summary();  // the second reading
  const GpuSummary summary = watch.summary();
  EXPECT_EQ(summary.readings, 3);
  EXPECT_NEAR(summary.mean_busy_share, 0.7, 1e-12);
  EXPECT_NEAR(summary.mean_watts, 200, 1e-12);
  EXPECT_EQ(summary.max_watts, 300);
  EXPECT_EQ(summary.max_celsius, 60);
  EXPECT_NEAR(summary.mean_sm_mhz, 1600, 1e-9);
  EXPECT_NEAR(summary.joules, 600, 1e-9);
  EXPECT_EQ(watch.latest()->celsius, 50);
}

TEST(GpuWatch, TellsHowOftenItsClocksWereLowered) {
  std::atomic<int> count = 0;
  GpuWatch watch(std::make_unique<ListedReadings>(
                     std::vector<GpuReading>{{.max_sm_mhz = 1980, .watt_limit = 700, .lowered_by = 0},
                                             {.lowered_by = GpuReading::power_cap},
                                             {.lowered_by = GpuReading::power_cap | GpuReading::thermal},
                                             {}},
                     &count),
                 milliseconds(3600000));
  wait_for(count, 1);
  while (!watch.latest()) std::this_thread::sleep_for(milliseconds(1));
  watch.summary();
  watch.summary();
  const GpuSummary summary = watch.summary();  // the fourth, which does not know
  EXPECT_NEAR(summary.power_capped, 2.0 / 3, 1e-12);
  EXPECT_NEAR(summary.too_hot, 1.0 / 3, 1e-12);
  EXPECT_EQ(summary.slowed_by_hardware, 0);
  EXPECT_EQ(summary.max_sm_mhz, 1980);
  EXPECT_EQ(summary.watt_limit, 700);
}

TEST(GpuWatch, BeginsAnew) {
  std::atomic<int> count = 0;
  GpuWatch watch(std::make_unique<ListedReadings>(
                     std::vector<GpuReading>{
                         {.watts = 900, .joules = 100}, {.watts = 900, .joules = 200}, {.watts = 50, .joules = 260}},
                     &count),
                 milliseconds(3600000));
  while (!watch.latest()) std::this_thread::sleep_for(milliseconds(1));
  watch.begin();  // the second reading: where the counter stands
  const GpuSummary summary = watch.summary();
  EXPECT_EQ(summary.readings, 1);
  EXPECT_EQ(summary.max_watts, 50);
  EXPECT_NEAR(summary.joules, 60, 1e-9);
}

TEST(GpuWatch, TakesPowerTimesTimeWhereThereIsNoCounter) {
  std::atomic<int> count = 0;
  GpuWatch watch(std::make_unique<ListedReadings>(std::vector<GpuReading>{{.watts = 100}}, &count));
  const GpuSummary summary = watch.summary();
  EXPECT_NEAR(summary.joules, 100 * summary.seconds, 1e-9);
}

TEST(GpuWatch, ReadsAgainAfterEachPeriodAndEndsAtOnce) {
  std::atomic<int> count = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    GpuWatch often(std::make_unique<ListedReadings>(std::vector<GpuReading>{{}}, &count), milliseconds(1));
    wait_for(count, 3);
    GpuWatch seldom(std::make_unique<ListedReadings>(std::vector<GpuReading>{{}}, &count), milliseconds(3600000));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(60000));
}

TEST(GpuWatch, SaysWhatItKnowsInALine) {
  EXPECT_EQ(format_gpu(GpuReading{.busy_share = 0.984, .watts = 611.7, .celsius = 64}), "98 % busy, 612 W, 64 C");
  EXPECT_EQ(format_gpu(GpuReading{}), "");
  EXPECT_EQ(format_gpu(GpuSummary{.mean_busy_share = 0.94,
                                  .mean_watts = 540,
                                  .max_watts = 652,
                                  .max_celsius = 67,
                                  .mean_sm_mhz = 1965,
                                  .joules = 44280}),
            "94 % busy, 540 W on average, 652 W at most, 67 C at most, 1965 MHz, 12.3 Wh");
}

TEST(GpuWatch, SaysTheLeastAndTheMostOfSeveralInALine) {
  const auto sensor = open_gpu_sensor("0000:65:00.0", BRISK_FAKE_NVML);
  ASSERT_NE(sensor, nullptr);
  const std::vector<GpuReading> readings = {{.busy_share = 0.98,
                                             .watts = 610,
                                             .celsius = 64,
                                             .memory_used_bytes = 33'040'000'000,
                                             .memory_bytes = 80'000'000'000},
                                            {.busy_share = 0.91,
                                             .watts = 580,
                                             .celsius = 58,
                                             .memory_used_bytes = 31'200'000'000,
                                             .memory_bytes = 80'000'000'000}};
  EXPECT_EQ(format_gpus(readings), "2 GPUs 91 to 98 % busy, 1190 W, 58 to 64 C, 31.2 to 33.0 of 80.0 GB");
  const std::vector<GpuReading> some = {sensor->read(), GpuReading{}};  // unknown ones are left out
  EXPECT_EQ(format_gpus(some), "2 GPUs 12 % busy, 61 C, 0.0 of 0.0 GB");
  EXPECT_EQ(format_gpus(std::vector<GpuReading>(2)), "");
}

}  // namespace
}  // namespace brisk
