#include "base/machine/counters.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace brisk {

namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The number after `name` at the start of a line of "name  123 kB".
std::optional<double> number_after(std::string_view text, std::string_view name) {
  size_t at = text.starts_with(name) ? 0 : text.find("\n" + std::string(name));
  if (at == std::string_view::npos) return {};
  at = text.find_first_of("0123456789", at + name.size());
  if (at == std::string_view::npos) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// Word number `index`, from 0.
std::optional<double> word(std::string_view text, int index) {
  for (;; --index) {
    const size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    double value = 0;
    if (index == 0) {
      const auto [last, error] = std::from_chars(text.data(), text.data() + end, value);
      return error == std::errc() ? std::optional(value) : std::nullopt;
    }
    text.remove_prefix(end);
  }
}

double ticks_per_second() { return static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK))); }

// Of all processors together: what they did, in seconds.
std::optional<double> busy_seconds() {
  const std::string text = text_of("/proc/stat");
  if (!text.starts_with("cpu ")) return {};
  double ticks = 0;
  for (const int field : {1, 2, 3, 6, 7}) ticks += word(text, field).value_or(0);  // user nice system irq softirq
  return ticks / ticks_per_second();
}

std::optional<double> throttled() {
  const std::string unified = text_of("/sys/fs/cgroup/cpu.stat");
  if (const auto microseconds = number_after(unified, "throttled_usec")) return 1e-6 * *microseconds;
  const std::string first = text_of("/sys/fs/cgroup/cpu/cpu.stat");
  if (const auto nanoseconds = number_after(first, "throttled_time")) return 1e-9 * *nanoseconds;
  return {};
}

// /proc/self/stat, after the name in brackets: its 42nd field.
std::optional<double> disk_wait() {
  const std::string text = text_of("/proc/self/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  const auto ticks = word(std::string_view(text).substr(name_end + 1), 39);
  return ticks ? std::optional(*ticks / ticks_per_second()) : std::nullopt;
}

// Of every thread there is: /proc/self/task/*/schedstat has its nanoseconds on a processor and those waiting for one.
std::optional<double> waiting() {
  std::error_code failed;
  double nanoseconds = 0;
  bool known = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    const auto waited = word(text_of((task.path() / "schedstat").c_str()), 1);
    if (waited) nanoseconds += *waited;
    known |= waited.has_value();
  }
  return known ? std::optional(1e-9 * nanoseconds) : std::nullopt;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double difference(double now, double before) { return now < 0 || before < 0 ? -1 : std::max(0.0, now - before); }

}  // namespace

Counters read_counters() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  Counters now;
  now.user_seconds = seconds_of(usage.ru_utime);
  now.system_seconds = seconds_of(usage.ru_stime);
  now.waiting_seconds = waiting().value_or(-1);
  if (const auto busy = busy_seconds())
    now.other_seconds = std::max(0.0, *busy - now.user_seconds - now.system_seconds);
  now.minor_faults = usage.ru_minflt;
  now.major_faults = usage.ru_majflt;
  now.throttled_seconds = throttled().value_or(-1);
  now.disk_wait_seconds = disk_wait().value_or(-1);
  return now;
}

Counters Counters::operator-(const Counters& earlier) const {
  return {.user_seconds = user_seconds - earlier.user_seconds,
          .system_seconds = system_seconds - earlier.system_seconds,
          .waiting_seconds = difference(waiting_seconds, earlier.waiting_seconds),
          .other_seconds = difference(other_seconds, earlier.other_seconds),
          .minor_faults = minor_faults - earlier.minor_faults,
          .major_faults = major_faults - earlier.major_faults,
          .throttled_seconds = difference(throttled_seconds, earlier.throttled_seconds),
          .disk_wait_seconds = difference(disk_wait_seconds, earlier.disk_wait_seconds)};
}

int64_t swapped_bytes() {
  const auto kibibytes = number_after(text_of("/proc/self/status"), "VmSwap:");
  return kibibytes ? static_cast<int64_t>(*kibibytes) * 1024 : -1;
}

double cgroup_cores() {
  const std::string unified = text_of("/sys/fs/cgroup/cpu.max");  // "200000 100000", or "max 100000"
  const auto quota = word(unified, 0), period = word(unified, 1);
  if (quota && period && *period > 0) return *quota / *period;
  const auto old_quota = word(text_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), 0);
  const auto old_period = word(text_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us"), 0);
  return old_quota && old_period && *old_quota > 0 && *old_period > 0 ? *old_quota / *old_period : -1;
}

}  // namespace brisk
