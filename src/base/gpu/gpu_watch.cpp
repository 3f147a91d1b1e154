#include "base/gpu/gpu_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

namespace brisk {

GpuWatch::GpuWatch(std::unique_ptr<GpuSensor> sensor, std::chrono::milliseconds period)
    : sensor_(std::move(sensor)), period_(period) {
  if (!sensor_) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    sensor_.reset();  // no thread to be had: training goes on, and nobody watches
  }
}

GpuWatch::~GpuWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void GpuWatch::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    read_and_note();
    lock.lock();
    wake_.wait_for(lock, period_, [this] { return ends_; });
  }
}

void GpuWatch::Mean::add(double value) {
  if (value < 0) return;
  sum += value;
  ++count;
}

// NVML may take milliseconds; callers of latest() do not wait for it.
void GpuWatch::read_and_note() {
  const std::lock_guard reading_lock(reading_);
  const GpuReading reading = sensor_->read();
  const std::lock_guard lock(mutex_);
  latest_ = reading;
  Stretch& stretch = stretch_;
  if (stretch.first_joules < 0) stretch.first_joules = reading.joules;
  stretch.busy_share.add(reading.busy_share);
  stretch.watts.add(reading.watts);
  stretch.sm_mhz.add(reading.sm_mhz);
  stretch.memory_mhz.add(reading.memory_mhz);
  if (reading.lowered_by >= 0) {
    const auto is = [&](int64_t reason) { return (reading.lowered_by & reason) != 0 ? 1.0 : 0.0; };
    stretch.power_capped.add(is(GpuReading::power_cap));
    stretch.too_hot.add(is(GpuReading::thermal));
    stretch.slowed_by_hardware.add(is(GpuReading::hardware_slowdown));
  }
  GpuSummary& most = stretch.most;
  ++most.readings;
  most.max_watts = std::max(most.max_watts, reading.watts);
  most.max_celsius = std::max(most.max_celsius, reading.celsius);
  most.max_sm_mhz = std::max(most.max_sm_mhz, reading.max_sm_mhz);
  most.watt_limit = std::max(most.watt_limit, reading.watt_limit);
  most.max_memory_used_bytes = std::max(most.max_memory_used_bytes, reading.memory_used_bytes);
}

std::optional<GpuReading> GpuWatch::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void GpuWatch::begin() {
  if (!sensor_) return;
  const std::lock_guard reading_lock(reading_);
  const double joules = sensor_->read().joules;
  const std::lock_guard lock(mutex_);
  stretch_ = {};
  stretch_.first_joules = joules;
}

GpuSummary GpuWatch::summary() {
  if (!sensor_) return {};
  read_and_note();  // the energy used so far
  const std::lock_guard lock(mutex_);
  GpuSummary summary = stretch_.most;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - stretch_.start).count();
  summary.mean_busy_share = stretch_.busy_share.value();
  summary.mean_watts = stretch_.watts.value();
  summary.mean_sm_mhz = stretch_.sm_mhz.value();
  summary.mean_memory_mhz = stretch_.memory_mhz.value();
  summary.power_capped = stretch_.power_capped.value();
  summary.too_hot = stretch_.too_hot.value();
  summary.slowed_by_hardware = stretch_.slowed_by_hardware.value();
  if (stretch_.first_joules >= 0 && latest_->joules >= stretch_.first_joules) {
    summary.joules = latest_->joules - stretch_.first_joules;
  } else if (summary.mean_watts >= 0) {
    summary.joules = summary.mean_watts * summary.seconds;
  }
  return summary;
}

std::string format_gpu(const GpuReading& reading) {
  std::vector<std::string> parts;
  if (reading.busy_share >= 0) parts.push_back(fmt::format("{:.0f} % busy", 100 * reading.busy_share));
  if (reading.watts >= 0) parts.push_back(fmt::format("{:.0f} W", reading.watts));
  if (reading.celsius >= 0) parts.push_back(fmt::format("{:.0f} C", reading.celsius));
  return fmt::format("{}", fmt::join(parts, ", "));
}

namespace {

// Of those that are known.
struct Range {
  double least = 0, most = 0, sum = 0;
  int64_t count = 0;
  template <typename Read>
  Range(std::span<const GpuReading> readings, const Read& read) {
    for (const GpuReading& reading : readings) {
      const double value = read(reading);
      if (value < 0) continue;
      least = count == 0 ? value : std::min(least, value);
      most = std::max(most, value);
      sum += value;
      ++count;
    }
  }
  std::string text(int digits) const {
    const std::string low = fmt::format("{:.{}f}", least, digits), high = fmt::format("{:.{}f}", most, digits);
    return low == high ? low : low + " to " + high;
  }
};

}  // namespace

std::string format_gpus(std::span<const GpuReading> readings) {
  const Range busy(readings, [](const GpuReading& r) { return r.busy_share < 0 ? -1 : 100 * r.busy_share; });
  const Range watts(readings, [](const GpuReading& r) { return r.watts; });
  const Range celsius(readings, [](const GpuReading& r) { return r.celsius; });
  const auto gigabytes = [](int64_t bytes) { return bytes < 0 ? -1 : 1e-9 * static_cast<double>(bytes); };
  const Range used(readings, [&](const GpuReading& r) { return gigabytes(r.memory_used_bytes); });
  const Range all(readings, [&](const GpuReading& r) { return gigabytes(r.memory_bytes); });
  std::vector<std::string> parts;
  if (busy.count > 0) parts.push_back(busy.text(0) + " % busy");
  if (watts.count > 0) parts.push_back(fmt::format("{:.0f} W", watts.sum));
  if (celsius.count > 0) parts.push_back(celsius.text(0) + " C");
  if (used.count > 0)
    parts.push_back(used.text(1) + (all.count > 0 ? fmt::format(" of {:.1f}", all.most) : "") + " GB");
  if (parts.empty()) return "";
  return fmt::format("{} GPUs {}", readings.size(), fmt::join(parts, ", "));
}

std::string format_gpu(const GpuSummary& summary) {
  std::vector<std::string> parts;
  if (summary.mean_busy_share >= 0) parts.push_back(fmt::format("{:.0f} % busy", 100 * summary.mean_busy_share));
  if (summary.mean_watts >= 0) {
    parts.push_back(fmt::format("{:.0f} W on average, {:.0f} W at most", summary.mean_watts, summary.max_watts));
  }
  if (summary.max_celsius >= 0) parts.push_back(fmt::format("{:.0f} C at most", summary.max_celsius));
  if (summary.mean_sm_mhz >= 0) parts.push_back(fmt::format("{:.0f} MHz", summary.mean_sm_mhz));
  if (summary.joules >= 0) parts.push_back(fmt::format("{:.3g} Wh", summary.joules / 3600));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace brisk
