#include "doctor/measure/block.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace brisk {

namespace {

double sum_known(double a, double b) { return a < 0 || b < 0 ? -1 : a + b; }

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

double Block::update_seconds() const {
  return steps > 0 ? (ledger.seconds(Phase::clipping) + ledger.seconds(Phase::optimizer)) / static_cast<double>(steps)
                   : 0;
}

Block& Block::operator+=(const Block& next) {
  if (steps == 0) return *this = next;
  steps += next.steps;
  micro_batches += next.micro_batches;
  sequences += next.sequences;
  tokens += next.tokens;
  rows += next.rows;
  targets += next.targets;
  forward_passes = forward_passes < 0 || next.forward_passes < 0 ? -1 : forward_passes + next.forward_passes;
  seconds += next.seconds;
  append(step_seconds, next.step_seconds);
  append(step_losses, next.step_losses);
  append(step_tokens, next.step_tokens);
  ledger += next.ledger;
  counters.user_seconds += next.counters.user_seconds;
  counters.system_seconds += next.counters.system_seconds;
  counters.waiting_seconds = sum_known(counters.waiting_seconds, next.counters.waiting_seconds);
  counters.other_seconds = sum_known(counters.other_seconds, next.counters.other_seconds);
  counters.minor_faults += next.counters.minor_faults;
  counters.major_faults += next.counters.major_faults;
  counters.throttled_seconds = sum_known(counters.throttled_seconds, next.counters.throttled_seconds);
  counters.disk_wait_seconds = sum_known(counters.disk_wait_seconds, next.counters.disk_wait_seconds);
  return *this;
}

nlohmann::ordered_json block_to_json(const Block& block) {
  const Counters& counters = block.counters;
  return {{"steps", block.steps},
          {"micro_batches", block.micro_batches},
          {"sequences", block.sequences},
          {"tokens", block.tokens},
          {"rows", block.rows},
          {"targets", block.targets},
          {"forward_passes", block.forward_passes},
          {"seconds", block.seconds},
          {"step_seconds", block.step_seconds},
          {"step_losses", block.step_losses},
          {"step_tokens", block.step_tokens},
          {"ledger", block.ledger.nanoseconds},
          {"user_seconds", counters.user_seconds},
          {"system_seconds", counters.system_seconds},
          {"waiting_seconds", counters.waiting_seconds},
          {"other_seconds", counters.other_seconds},
          {"minor_faults", counters.minor_faults},
          {"major_faults", counters.major_faults},
          {"throttled_seconds", counters.throttled_seconds},
          {"disk_wait_seconds", counters.disk_wait_seconds},
          {"gpu_busy_seconds", block.gpu_busy_seconds},
          {"gpu_kernels", block.gpu_kernels}};
}

Block block_from_json(const nlohmann::ordered_json& json) {
  Block block;
  json.at("steps").get_to(block.steps);
  json.at("micro_batches").get_to(block.micro_batches);
  json.at("sequences").get_to(block.sequences);
  json.at("tokens").get_to(block.tokens);
  json.at("rows").get_to(block.rows);
  json.at("targets").get_to(block.targets);
  json.at("forward_passes").get_to(block.forward_passes);
  json.at("seconds").get_to(block.seconds);
  json.at("step_seconds").get_to(block.step_seconds);
  for (const auto& loss : json.at("step_losses"))  // null: not finite
    block.step_losses.push_back(loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN());
  json.at("step_tokens").get_to(block.step_tokens);
  json.at("ledger").get_to(block.ledger.nanoseconds);
  json.at("user_seconds").get_to(block.counters.user_seconds);
  json.at("system_seconds").get_to(block.counters.system_seconds);
  json.at("waiting_seconds").get_to(block.counters.waiting_seconds);
  json.at("other_seconds").get_to(block.counters.other_seconds);
  json.at("minor_faults").get_to(block.counters.minor_faults);
  json.at("major_faults").get_to(block.counters.major_faults);
  json.at("throttled_seconds").get_to(block.counters.throttled_seconds);
  json.at("disk_wait_seconds").get_to(block.counters.disk_wait_seconds);
  json.at("gpu_busy_seconds").get_to(block.gpu_busy_seconds);
  json.at("gpu_kernels").get_to(block.gpu_kernels);
  return block;
}

}  // namespace brisk
