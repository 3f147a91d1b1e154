#include "doctor/ladder/subject.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "doctor/ladder/statistics.h"

namespace brisk {

Subject::Subject(Job job, const MeasuringLength& length, std::string folder, bool keeps_gradient, int64_t processes)
    : job_(std::move(job)), length_(length), folder_(std::move(folder)), processes_(processes) {
  if (keeps_gradient) gradient_ = folder_ + "/gradient";
}

void Subject::start() {
  const int64_t begin = kSystemClock.nanoseconds();
  run_ = std::make_unique<MeasuredRun>(for_measuring(job_, length_), folder_, gradient_, processes_);
  facts_ = run_->start();
  constexpr int kMostSteps = 4;
  constexpr double kSeconds = 0.5;
  double warm = 0;
  for (int i = 0; i < kMostSteps && warm < kSeconds; ++i) warm += go(1).seconds;  // at least a step each
  start_seconds_ = kSystemClock.seconds_since(begin);
}

Block Subject::go(int64_t sequences, bool watches_gpu) {
  Block block = run_->go(sequences, watches_gpu);
  tokens_.insert(tokens_.end(), block.step_tokens.begin(), block.step_tokens.end());
  losses_.insert(losses_.end(), block.step_losses.begin(), block.step_losses.end());
  step_seconds_ = median(block.step_seconds);
  return block;
}

int64_t Subject::sequences_in(double seconds) const {
  const double steps = step_seconds_ > 0 ? std::max(1.0, std::round(seconds / step_seconds_)) : 1;
  return static_cast<int64_t>(steps) * std::max<int64_t>(1, facts_.sequences_per_step);
}

const Block& Subject::measure(double seconds) {
  blocks_.push_back(go(sequences_in(seconds)));
  return blocks_.back();
}

const Block& Subject::watched_block(double seconds) {
  if (watched_.steps == 0 && runs()) watched_ = go(sequences_in(seconds), true);
  return watched_;
}

Block Subject::total() const {
  Block all;
  for (const Block& block : blocks_) all += block;
  return all;
}

double Subject::seconds_per_token(const Block& block) const {
  if (block.tokens <= 0) return 0;
  if (length_.sequences_per_step <= 0) return block.seconds / block.tokens;
  const double whole_step = static_cast<double>(job_.training.batch_size * job_.training.gradient_accumulation_steps);
  const double per_sequence = block.tokens / static_cast<double>(std::max<int64_t>(1, block.sequences));
  const double updates = block.update_seconds() * static_cast<double>(block.steps);
  return (block.seconds - updates) / block.tokens + block.update_seconds() / (whole_step * per_sequence);
}

double Subject::seconds_per_token() const {
  std::vector<double> each;
  for (const Block& block : blocks_) each.push_back(seconds_per_token(block));
  return median(each);
}

double Subject::tokens_per_sequence() const {
  const Block all = total();
  return all.sequences > 0 ? all.tokens / static_cast<double>(all.sequences) : 0;
}

double Subject::tokens_done() const { return std::accumulate(tokens_.begin(), tokens_.end(), 0.0); }

std::optional<double> Subject::loss_after(double tokens) const {
  double done = 0, weighted = 0, counted = 0;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    done += tokens_[i];
    if (done > tokens * 0.5 || tokens_.size() == 1) {
      weighted += losses_[i] * tokens_[i];
      counted += tokens_[i];
    }
    if (done >= tokens) return counted > 0 ? std::optional(weighted / counted) : std::nullopt;
  }
  return {};
}

}  // namespace brisk
