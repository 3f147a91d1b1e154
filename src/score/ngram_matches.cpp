#include "score/ngram_matches.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace brisk {

void NgramMatches::Numbers::start(size_t most) {
  const size_t needed = std::bit_ceil(std::max<size_t>(64, 2 * most));
  if (needed > slots_.size() || ++round_ == 0) {  // the rounds came to their end: forget all
    slots_.assign(std::max(needed, slots_.size()), {});
    round_ = 1;
  }
  mask_ = needed - 1;  // no more of a large table than a small text needs
  size_ = 0;
}

uint32_t NgramMatches::Numbers::number_of(uint64_t key) {
  for (uint64_t at = hash_mix(key, 0) & mask_;; at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.round != round_) {
      slot = {key, size_, round_};
      return size_++;
    }
    if (slot.key == key) return slot.number;
  }
}

uint32_t NgramMatches::Numbers::find(uint64_t key) const {
  for (uint64_t at = hash_mix(key, 0) & mask_;; at = (at + 1) & mask_) {
    const Slot& slot = slots_[at];
    if (slot.round != round_) return kNone;
    if (slot.key == key) return slot.number;
  }
}

void NgramMatches::number_hypothesis(int order) {
  Text& text = hypothesis_;
  const auto count = static_cast<size_t>(ngrams_in(text.symbols.size(), order));
  numbers_.start(count);
  in_hypothesis_.clear();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t shorter = order == 1 ? 0 : text.ngrams[i];
    const uint32_t number = numbers_.number_of(shorter << 32 | text.symbols[i + order - 1]);
    if (number == in_hypothesis_.size()) in_hypothesis_.push_back(0);
    ++in_hypothesis_[number];
    text.ngrams[i] = number;
  }
}

void NgramMatches::count_reference(Text& reference, int order) {
  const auto count = static_cast<size_t>(ngrams_in(reference.symbols.size(), order));
  for (size_t i = 0; i < count; ++i) {
    uint32_t& ngram = reference.ngrams[i];
    if (order > 1 && ngram == kNone) continue;
    const uint64_t shorter = order == 1 ? 0 : ngram;
    ngram = numbers_.find(shorter << 32 | reference.symbols[i + order - 1]);
    if (ngram != kNone) ++in_reference_[ngram];
  }
  int64_t matches = 0;
  for (size_t i = 0; i < count; ++i) {  // each n-gram of the reference once: its count is taken away
    const uint32_t ngram = reference.ngrams[i];
    if (ngram == kNone || in_reference_[ngram] == 0) continue;
    matches += std::min(in_hypothesis_[ngram], in_reference_[ngram]);
    in_any_reference_[ngram] = std::max(in_any_reference_[ngram], in_reference_[ngram]);
    in_reference_[ngram] = 0;
  }
  reference.matches[order - 1] = matches;
}

void NgramMatches::count(size_t references, int orders) {
  hypothesis_.ngrams.assign(hypothesis_.symbols.size(), kNone);
  for (size_t k = 0; k < references; ++k) {
    references_[k].ngrams.assign(references_[k].symbols.size(), kNone);
    references_[k].matches = {};
  }
  clipped_ = {};
  for (int order = 1; order <= orders; ++order) {
    number_hypothesis(order);
    in_reference_.assign(numbers_.size(), 0);
    in_any_reference_.assign(numbers_.size(), 0);
    for (size_t k = 0; k < references; ++k) count_reference(references_[k], order);
    for (size_t i = 0; i < in_any_reference_.size(); ++i) {
      clipped_[order - 1] += std::min(in_hypothesis_[i], in_any_reference_[i]);
    }
  }
}

}  // namespace brisk
