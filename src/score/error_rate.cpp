#include "score/error_rate.h"

#include <string>

#include "base/text/lowercase.h"
#include "score/bleu_words.h"

namespace brisk {

ErrorStatistics& ErrorStatistics::operator+=(const ErrorStatistics& other) {
  errors += other.errors;
  reference_length += other.reference_length;
  return *this;
}

double error_rate(const ErrorStatistics& statistics) {
  const auto errors = static_cast<double>(statistics.errors);
  return statistics.reference_length == 0 ? errors : errors / static_cast<double>(statistics.reference_length);
}

void ErrorRate::read(std::string_view text, std::vector<uint32_t>& symbols) {
  std::string lower;
  if (lowercase_) text = lower = lowercase_text(text);
  symbols.clear();
  if (unit_ == TextUnit::kWord) {
    // As strings of their own: those of the hypothesis are read after these are gone.
    for_each_word(text, [&](std::string_view word) {
      const auto number = static_cast<uint32_t>(words_.size());
      symbols.push_back(words_.try_emplace(std::string(word), number).first->second);
    });
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    const bool is_valid = character.value != kInvalidCodePoint;
    symbols.push_back(is_valid ? character.value : kCodePoints + static_cast<unsigned char>(text[at]));
    at += character.length;
  }
}

void ErrorRate::add(std::string_view hypothesis, std::string_view reference) {
  words_.clear();
  read(reference, reference_);
  read(hypothesis, hypothesis_);
  statistics_.errors += distance_.between(hypothesis_, reference_);
  statistics_.reference_length += static_cast<int64_t>(reference_.size());
}

}  // namespace brisk
