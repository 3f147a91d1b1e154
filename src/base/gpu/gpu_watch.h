// Reads a GPU's sensors once a second on a thread of its own, so that a step never waits for them.
//
//   GpuWatch watch(open_gpu_sensor(bus_id));     // with a null sensor, all values stay unknown
//   if (const auto now = watch.latest()) progress.gpu = format_gpu(*now);
//   const GpuSummary whole = watch.summary();     // since the watch began, or since begin()
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/gpu/gpu_sensor.h"

namespace brisk {

// Readings over a period. Negative values are unknown.
struct GpuSummary {
  int64_t readings = 0;
  double seconds = 0;
  double mean_busy_share = -1;
  double mean_watts = -1, max_watts = -1;
  double max_celsius = -1;
  double mean_sm_mhz = -1, mean_memory_mhz = -1;
  double joules = -1;                       // by the GPU's own counter; else mean power times seconds
  int64_t max_memory_used_bytes = -1;       // by all processes
  double max_sm_mhz = -1, watt_limit = -1;  // what it may have
  // Shares of the readings in which its clocks were lowered.
  double power_capped = -1, too_hot = -1, slowed_by_hardware = -1;
};

class GpuWatch {
 public:
  explicit GpuWatch(std::unique_ptr<GpuSensor> sensor,
                    std::chrono::milliseconds period = std::chrono::milliseconds(1000));
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  std::optional<GpuReading> latest() const;  // empty before the first reading
  void begin();                              // summary() covers the time from now on
  GpuSummary summary();                      // reads once more if the period has no reading yet

 private:
  struct Mean {
    double sum = 0;
    int64_t count = 0;
    void add(double value);
    double value() const { return count > 0 ? sum / static_cast<double>(count) : -1; }
  };
  struct Stretch {
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    double first_joules = -1;  // the counter when the stretch began
    Mean busy_share, watts, sm_mhz, memory_mhz, power_capped, too_hot, slowed_by_hardware;
    GpuSummary most;  // its maxima and counts
  };
  void read_and_note();
  void run();

  std::unique_ptr<GpuSensor> sensor_;
  std::chrono::milliseconds period_;
  mutable std::mutex mutex_;  // guards the following
  std::condition_variable wake_;
  bool ends_ = false;
  std::optional<GpuReading> latest_;
  Stretch stretch_;
  std::mutex reading_;  // one reading at a time
  std::thread thread_;
};

// "98 % busy, 612 W, 64 C", for a progress line; unknown values are left out.
std::string format_gpu(const GpuReading& reading);
// "4 GPUs 91 to 98 % busy, 2410 W, 58 to 64 C, 31.2 to 33.0 of 80.0 GB": the least and the most of several, and the sum of watts.
std::string format_gpus(std::span<const GpuReading> readings);
// "94 % busy, 540 W on average, 652 W at most, 67 C at most, 1965 MHz, 12.3 Wh": for the end of a run.
std::string format_gpu(const GpuSummary& summary);

}  // namespace brisk
