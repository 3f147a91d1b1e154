#include "train/engine/divergence_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace brisk {

namespace {

constexpr double kJump = 2;  // nats

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double highest_of(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

void remember(std::vector<double>& window, double value) {
  if (window.size() >= kGuardWindow) window.erase(window.begin());
  window.push_back(value);
}

}  // namespace

UpdateLimits DivergenceGuard::limits() const {
  UpdateLimits limits;
  if (!is_on()) return limits;
  if (state_.gradient_norms.size() >= kGuardLeast) {
    const double median = median_of(state_.gradient_norms);
    // A model that has stopped learning has norms of nothing; any is large compared with them.
    limits.gradient_norm = std::max(training_.divergence_gradient_ratio * median, 1e-6);
  }
  // Above the highest, not the median: a batch of rare text, the like of which has been seen, is no outlier.
  if (state_.losses.size() >= kGuardLeast) limits.loss = highest_of(state_.losses) + kJump;
  return limits;
}

DivergenceGuard::Verdict DivergenceGuard::observe(int64_t step, const StepResult& result) {
  Verdict verdict;
  if (!is_on()) return verdict;
  const UpdateLimits before = limits();
  const double loss = result.loss();
  if (result.updated) {
    remember(state_.gradient_norms, result.gradient_norm);
  } else {
    verdict.skipped = true;
    ++state_.skipped;
    state_.recent_skips.push_back(step);
    if (!result.finite()) {
      verdict.reason = std::isfinite(result.loss_sum) ? "the gradient is not finite" : "the loss is not finite";
    } else if (result.gradient_norm > before.gradient_norm) {
      const double median = median_of(state_.gradient_norms);
      verdict.reason = fmt::format("the gradient's norm, {:.3g}, is {:.3g} times the median of the last {}, {:.3g}",
                                   result.gradient_norm, result.gradient_norm / std::max(median, 1e-12),
                                   state_.gradient_norms.size(), median);
    } else {
      verdict.reason = fmt::format("the loss jumped to {:.4g}; the highest of the last {} was {:.4g}", loss,
                                   state_.losses.size(), highest_of(state_.losses));
    }
  }
  std::erase_if(state_.recent_skips, [&](int64_t skip) { return skip <= step - kGuardSkipWindow; });
  if (state_.recent_skips.size() >= kGuardSkips) {
    verdict.diverged = true;
    verdict.reason = fmt::format("{} of the last {} updates were skipped; the last one because {}",
                                 state_.recent_skips.size(), kGuardSkipWindow, verdict.reason);
    return verdict;
  }
  if (!std::isfinite(loss)) return verdict;
  if (state_.first_loss == 0) state_.first_loss = state_.lowest_loss = loss;
  remember(state_.losses, loss);
  if (state_.losses.size() < kGuardLeast) return verdict;
  const double median = median_of(state_.losses);
  state_.lowest_loss = std::min(state_.lowest_loss, median);
  if (median > loss_to_fear()) {
    verdict.diverged = true;
    verdict.reason = fmt::format("the median loss of the last {} steps rose to {:.4g} from {:.4g}",
                                 state_.losses.size(), median, state_.lowest_loss);
  }
  return verdict;
}

// Half of what was learned since the first step is lost; a nat at the least, so that a wavering loss is none.
double DivergenceGuard::loss_to_fear() const {
  return state_.lowest_loss + std::max(1.0, 0.5 * (state_.first_loss - state_.lowest_loss));
}

bool DivergenceGuard::healthy() const {
  if (!is_on()) return true;
  if (!state_.recent_skips.empty()) return false;
  return state_.losses.empty() || median_of(state_.losses) <= 0.5 * (state_.lowest_loss + loss_to_fear());
}

GuardState DivergenceGuard::after_rollback(GuardState saved, const GuardState& now) {
  saved.recent_skips.clear();
  saved.skipped = now.skipped;
  saved.rollbacks = now.rollbacks + 1;
  saved.rate_factor = 0.5 * now.rate_factor;
  saved.healthy = true;
  return saved;
}

}  // namespace brisk
