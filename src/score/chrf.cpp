#include "score/chrf.h"

#include <brisk/version.h>

#include <vector>

#include "base/error.h"
#include "base/text/lowercase.h"
#include "score/bleu.h"
#include "score/bleu_words.h"

namespace brisk {

namespace {

void read_characters(std::string_view text, std::vector<uint32_t>& characters) {
  characters.clear();
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    const bool is_valid = character.value != kInvalidCodePoint;
    if (!is_python_space(character.value)) {
      characters.push_back(is_valid ? character.value : kCodePoints + static_cast<unsigned char>(text[at]));
    }
    at += character.length;
  }
}

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Words, with a punctuation mark at the end of one taken off, or else one at its beginning: "(hi)" is "(hi" and ")".
template <typename Visit>
void for_each_chrf_word(std::string_view text, const Visit& visit) {
  for_each_word(text, [&](std::string_view word) {
    const size_t last = word.size() - 1;
    if (last > 0 && is_ascii_punctuation(word[last])) {
      visit(word.substr(0, last));
      visit(word.substr(last));
    } else if (last > 0 && is_ascii_punctuation(word[0])) {
      visit(word.substr(0, 1));
      visit(word.substr(1));
    } else {
      visit(word);
    }
  });
}

}  // namespace

ChrfStatistics& ChrfStatistics::operator+=(const ChrfStatistics& other) {
  for (size_t i = 0; i < orders.size(); ++i) {
    orders[i].in_hypothesis += other.orders[i].in_hypothesis;
    orders[i].in_reference += other.orders[i].in_reference;
    orders[i].matches += other.orders[i].matches;
  }
  return *this;
}

double chrf_score(const ChrfStatistics& statistics, const ChrfOptions& options) {
  double precision = 0, recall = 0;
  int orders = 0;  // that both sides have
  for (int i = 0; i < kChrfCharacterOrders + options.word_order; ++i) {
    const ChrfStatistics::Order& order = statistics.orders[i];
    if (order.in_hypothesis == 0 || order.in_reference == 0) continue;
    precision += static_cast<double>(order.matches) / static_cast<double>(order.in_hypothesis);
    recall += static_cast<double>(order.matches) / static_cast<double>(order.in_reference);
    ++orders;
  }
  if (orders == 0) return 0;
  precision /= orders;
  recall /= orders;
  if (precision + recall == 0) return 0;
  const double factor = static_cast<double>(options.beta) * options.beta;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

std::string chrf_signature(const ChrfOptions& options, int64_t references) {
  return fmt::format("nrefs:{}|case:{}|eff:yes|nc:{}|nw:{}|space:no|version:brisk-{}",
                     references < 0 ? "var" : fmt::format("{}", references), options.lowercase ? "lc" : "mixed",
                     kChrfCharacterOrders, options.word_order, BRISK_VERSION_STRING);
}

std::string chrf_name(const ChrfOptions& options) {
  return fmt::format("chrF{}{}", options.beta, std::string(options.word_order, '+'));
}

Chrf::Chrf(ChrfOptions options) : options_(options) {
  BRISK_CHECK(options.word_order >= 0 && options.word_order <= kChrfMostWordOrders && options.beta > 0);
}

void Chrf::add(std::string_view hypothesis, std::span<const std::string_view> references) {
  BRISK_CHECK(!references.empty(), "a hypothesis without a reference");
  std::string lower_hypothesis, lower_reference;
  if (options_.lowercase) hypothesis = lower_hypothesis = lowercase_text(hypothesis);
  read_characters(hypothesis, characters_.hypothesis());
  numbers_.clear();
  words_.hypothesis().clear();
  if (options_.word_order > 0) {
    for_each_chrf_word(hypothesis, [&](std::string_view word) { words_.hypothesis().push_back(numbers_.add(word)); });
  }
  for (size_t k = 0; k < references.size(); ++k) {
    std::string_view reference = references[k];
    if (options_.lowercase) reference = lower_reference = lowercase_text(reference);
    read_characters(reference, characters_.reference(k));
    std::vector<uint32_t>& words = words_.reference(k);
    words.clear();
    if (options_.word_order > 0) {
      for_each_chrf_word(reference, [&](std::string_view word) { words.push_back(numbers_.find(word)); });
    }
  }
  characters_.count(references.size(), kChrfCharacterOrders);
  words_.count(references.size(), options_.word_order);

  ChrfStatistics best;
  double best_score = -1;
  for (size_t k = 0; k < references.size(); ++k) {
    ChrfStatistics found;
    const auto read = [&](NgramMatches& ngrams, int orders, ChrfStatistics::Order* out) {
      for (int n = 1; n <= orders; ++n, ++out) {
        out->in_reference = NgramMatches::ngrams_in(ngrams.reference(k).size(), n);
        // Not counted against the hypothesis where the reference is too short to have any.
        out->in_hypothesis = out->in_reference > 0 ? NgramMatches::ngrams_in(ngrams.hypothesis().size(), n) : 0;
        out->matches = ngrams.matches(k)[n - 1];
      }
    };
    read(characters_, kChrfCharacterOrders, found.orders.data());
    read(words_, options_.word_order, found.orders.data() + kChrfCharacterOrders);
    const double score = chrf_score(found, options_);
    if (score > best_score) {
      best_score = score;
      best = found;
    }
  }
  statistics_ += best;
  references_ = common_references(references_, static_cast<int64_t>(references.size()));
}

void Chrf::merge(const Chrf& other) {
  statistics_ += other.statistics_;
  references_ = common_references(references_, other.references_);
}

}  // namespace brisk
