#include "doctor/judge/compose.h"

#include <fmt/format.h>

#include <cmath>

#include "base/log.h"

namespace brisk {

std::string percent_text(double share) {
  const double percent = 100 * share;
  return std::abs(percent) < 9.95 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string ratio_text(double ratio) { return fmt::format("{:.2f}x", ratio); }

std::string number_text(double number) {
  if (std::abs(number) < 1000) return fmt::format("{:.4g}", number);
  std::string digits = fmt::format("{:.0f}", number);
  for (size_t end = digits.size(); end > 3 + (number < 0 ? 1U : 0U);) digits.insert(end -= 3, ",");
  return digits;
}

std::string speed_text(double tokens_per_second) { return format_count(tokens_per_second) + " tokens/s"; }

std::string json_string(std::string_view text) { return fmt::format("\"{}\"", text); }
std::string json_number(double number) { return fmt::format("{:.6g}", number); }

Fix set_key(std::string key, std::string value, std::string advice) {
  return {.key = std::move(key), .value = std::move(value), .advice = std::move(advice)};
}

Fix advise(std::string advice) { return {.key = {}, .value = {}, .advice = std::move(advice)}; }

void scale_rates(Fix& fix, const Job& job, double factor, std::string rule) {
  const TrainingOptions& training = job.training;
  const auto add = [&](const char* key, double rate) {
    if (rate > 0 && fix.key != key) fix.also.emplace_back(key, fmt::format("{:.4g}", rate * factor));
  };
  add("training.learning_rate", training.learning_rate);
  if (training.optimizer == "muon" && training.lora_rank == 0)
    add("training.muon_learning_rate", training.muon_learning_rate);
  if (!fix.also.empty()) fix.rule = std::move(rule);
}

void follow_batch(Fix& fix, const Job& job, double ratio) {
  const double factor = std::sqrt(ratio);
  scale_rates(fix, job, factor,
              fmt::format("the learning rates follow the square root of the batch: {} times the sequences, {} times "
                          "the rate",
                          number_text(ratio), fmt::format("{:.3g}", factor)));
}

}  // namespace brisk
