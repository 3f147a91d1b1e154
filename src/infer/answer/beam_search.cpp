#include "infer/answer/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace brisk {

BeamSearch::BeamSearch(const BeamOptions& options, TokenId end, int64_t max_length, int64_t forced)
    : options_(options), end_(end), max_length_(max_length), forced_(forced) {
  BRISK_CHECK(options.beams >= 1 && max_length >= 1, "{} beams, {} tokens", options.beams, max_length);
}

double BeamSearch::score(double log_probability, int64_t length) const {
  return log_probability / std::pow(static_cast<double>(forced_ + length), options_.length_penalty);
}

// Twice as many as there are beams: each beam has one end token, so as many as there are beams are left to run on.
std::vector<BeamSearch::Candidate> BeamSearch::best_candidates(std::span<const float> log_probabilities,
                                                               size_t known) const {
  const size_t vocabulary = log_probabilities.size() / running_.size();
  const size_t wanted = std::min(static_cast<size_t>(2 * options_.beams), known * running_.size());
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
  };
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  // A heap of the best so far, its worst in front: most tokens are worse, and cost a comparison.
  std::vector<Candidate> best;
  best.reserve(wanted + 1);
  for (size_t beam = 0; beam < running_.size(); ++beam) {
    const std::span<const float> row = log_probabilities.subspan(beam * vocabulary, vocabulary);
    const double before = running_[beam].log_probability;
    for (size_t token = 0; token < known; ++token) {
      const double sum = before + row[token];
      if (sum == kNever || (best.size() == wanted && !(sum > best.front().log_probability))) continue;
      best.push_back({sum, static_cast<int64_t>(beam), static_cast<TokenId>(token)});
      std::push_heap(best.begin(), best.end(), likelier);
      if (best.size() <= wanted) continue;
      std::pop_heap(best.begin(), best.end(), likelier);
      best.pop_back();
    }
  }
  std::sort(best.begin(), best.end(), likelier);
  return best;
}

void BeamSearch::keep(Found found) {
  const auto better = [](const Found& a, const Found& b) { return a.score > b.score; };
  found_.insert(std::upper_bound(found_.begin(), found_.end(), found, better), std::move(found));
  if (std::ssize(found_) > options_.beams) found_.pop_back();
}

bool BeamSearch::can_improve() const {
  if (std::ssize(found_) < options_.beams) return true;
  if (options_.early_stopping == EarlyStopping::first) return false;
  const bool longest = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  return score(running_.front().log_probability, longest ? max_length_ : length_) > found_.back().score;
}

void BeamSearch::advance(std::span<const float> log_probabilities, int64_t known) {
  BRISK_CHECK(!done_ && !log_probabilities.empty() && log_probabilities.size() % running_.size() == 0,
              "{} log probabilities of {} texts", log_probabilities.size(), running_.size());
  ++length_;
  const bool last = length_ == max_length_;
  const auto vocabulary = static_cast<int64_t>(log_probabilities.size() / running_.size());
  const std::vector<Candidate> candidates =
      best_candidates(log_probabilities, static_cast<size_t>(known > 0 ? std::min(known, vocabulary) : vocabulary));
  std::vector<Running> next;
  for (size_t place = 0; place < candidates.size(); ++place) {
    const Candidate& candidate = candidates[place];
    const std::vector<TokenId>& before = running_[static_cast<size_t>(candidate.beam)].tokens;
    const bool ends = candidate.token == end_;
    if (ends || last) {
      // An end below as many better candidates as there are beams is none: they are to run on.
      if (static_cast<int64_t>(place) >= options_.beams) continue;
      Found found{before, score(candidate.log_probability, length_), ends};
      if (!ends) found.tokens.push_back(candidate.token);
      keep(std::move(found));
    } else if (std::ssize(next) < options_.beams) {
      Running& running = next.emplace_back(Running{before, candidate.log_probability, candidate.beam});
      running.tokens.push_back(candidate.token);
    }
  }
  running_ = std::move(next);
  done_ = running_.empty() || !can_improve();
}

}  // namespace brisk
