#include "train/run/plan/allocation.h"

#include <fmt/format.h>
#include <stdio.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "job/run_length.h"

namespace brisk {

namespace {

constexpr const char* kFix = "; give a time, such as --stop 30m";

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return {};
  return value;
}

// What squeue prints of a job, without the line end; the shell's messages are left to it.
std::string ask_squeue(int64_t job) {
  constexpr int kPatience = 20;
  FILE* const pipe = ::popen(fmt::format("timeout {} squeue -h -j {} -o %e", kPatience, job).c_str(), "re");
  if (pipe == nullptr) return "";
  std::array<char, 256> text{};
  const size_t size = ::fread(text.data(), 1, text.size() - 1, pipe);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return "";
  const std::string all(text.data(), size);
  return all.substr(0, all.find('\n'));
}

// Seconds since 1970.
int64_t end_of_allocation() {
  const Runtime& runtime = Runtime::current();
  const std::string job(runtime.environment("SLURM_JOB_ID")), told(runtime.environment("SLURM_JOB_END_TIME"));
  if (job.empty()) {
    user_error(
        "training.stop is \"auto\": until the Slurm allocation ends; this process is in none (SLURM_JOB_ID is not set){}",
        kFix);
  }
  if (const auto end = whole_number(told)) return *end;
  const auto number = whole_number(job);
  if (!number) user_error("SLURM_JOB_ID is \"{}\", expected a number", job);
  const std::string answer = ask_squeue(*number);
  std::tm time{};
  time.tm_isdst = -1;
  const char* const rest = ::strptime(answer.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (answer.empty() || rest == nullptr || *rest != '\0') {
    user_error("training.stop is \"auto\", but when Slurm job {} ends is not known: squeue -h -j {} -o %e says {}{}",
               job, job, answer.empty() ? "nothing" : "\"" + answer + "\"", kFix);
  }
  return std::mktime(&time);
}

}  // namespace

bool ends_with_allocation(const TrainingOptions& training) {
  return !training.stop.empty() && parse_run_length(training.stop, "training.stop").unit == RunLength::Unit::allocation;
}

double seconds_left_to_train() {
  constexpr double kShareKept = 0.01, kLeastKept = 10, kMostKept = 60, kLeastToTrain = 10;
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double left = static_cast<double>(end_of_allocation()) - now;
  const double kept = std::clamp(kShareKept * left, kLeastKept, kMostKept);
  if (left - kept < kLeastToTrain) {
    user_error(
        "training.stop is \"auto\", but the Slurm allocation ends in {}, of which {} are kept for its end: too little to "
        "train",
        format_duration(std::max(0.0, left)), format_duration(kept));
  }
  return left - kept;
}

}  // namespace brisk
