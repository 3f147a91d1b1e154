// Beam search over the next-token probabilities of one text, as transformers' generate() does it: the widest sums of log
// probabilities run on, those that end are scored by their length. Knows no model: it says which texts so far it wants the
// next token of, and is told their log probabilities.
//
//   BeamSearch search({.beams = 4}, /*end=*/2, /*max_length=*/128);
//   while (!search.is_done()) {
//     const std::vector<BeamSearch::Running>& running = search.running();   // text and parent of each
//     search.advance(log_probabilities);                                     // [running, V]
//   }
//   for (const BeamSearch::Found& found : search.found()) ...               // the best first
//
// The score of a text of n tokens, its end token among them, is its sum of log probabilities / n^length_penalty.
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace brisk {

struct BeamOptions {
  int64_t beams = 4;
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::heuristic;
};

class BeamSearch {
 public:
  // `max_length`: tokens of a text at most, the end token counted. `forced`: tokens that all texts begin with, which count in
  // the length that a score is divided by.
  BeamSearch(const BeamOptions& options, TokenId end, int64_t max_length, int64_t forced = 0);

  struct Running {
    std::vector<TokenId> tokens;
    double log_probability = 0;  // the sum
    int64_t parent = 0;          // which of the running texts before the last advance() it goes on from
  };
  // One at the start; later as many as there are beams, or fewer where the vocabulary has not so many tokens.
  const std::vector<Running>& running() const { return running_; }
  // Log probabilities of the next token of each running text, in their order: [running, V]. Only the first `known` tokens are
  // taken, 0: all; and none of which the log probability is minus infinity.
  void advance(std::span<const float> log_probabilities, int64_t known = 0);
  bool is_done() const { return done_; }

  struct Found {
    std::vector<TokenId> tokens;  // without the end token
    double score = 0;
    bool ended = true;  // false: it was cut at max_length
  };
  // At most as many as there are beams, the best first. Never empty when the search is done.
  const std::vector<Found>& found() const { return found_; }

 private:
  struct Candidate {
    double log_probability;
    int64_t beam;
    TokenId token;
  };
  std::vector<Candidate> best_candidates(std::span<const float> log_probabilities, size_t known) const;
  void keep(Found found);
  bool can_improve() const;
  double score(double log_probability, int64_t length) const;

  BeamOptions options_;
  TokenId end_;
  int64_t max_length_, forced_, length_ = 0;
  std::vector<Running> running_ = std::vector<Running>(1);
  std::vector<Found> found_;
  bool done_ = false;
};

}  // namespace brisk
