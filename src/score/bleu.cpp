#include "score/bleu.h"

#include <brisk/version.h>

#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text/lowercase.h"

namespace brisk {

namespace {

struct Smoothing {
  BleuSmoothing smoothing;
  const char* name;
  std::optional<double> value;  // where none is given
};
constexpr Smoothing kSmoothings[] = {{BleuSmoothing::kExp, "exp", std::nullopt},
                                     {BleuSmoothing::kFloor, "floor", 0.1},
                                     {BleuSmoothing::kAddK, "add-k", 1.0},
                                     {BleuSmoothing::kNone, "none", std::nullopt}};

const Smoothing& smoothing_of(const BleuOptions& options) {
  for (const Smoothing& known : kSmoothings) {
    if (known.smoothing == options.smoothing) return known;
  }
  BRISK_CHECK(false, "a smoothing without a name");
}

double smooth_value_of(const BleuOptions& options) {
  return options.smooth_value.value_or(smoothing_of(options).value.value_or(0));
}

int64_t closest(int64_t length, std::span<const int64_t> references) {
  int64_t best = references.front();
  for (const int64_t reference : references) {
    const int64_t distance = std::abs(length - reference), best_distance = std::abs(length - best);
    if (distance < best_distance || (distance == best_distance && reference < best)) best = reference;
  }
  return best;
}

}  // namespace

BleuSmoothing bleu_smoothing_from(std::string_view name, std::string_view option) {
  for (const Smoothing& known : kSmoothings) {
    if (name == known.name) return known.smoothing;
  }
  user_error("{}: found \"{}\", expected exp, floor, add-k or none", option, name);
}

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  for (int i = 0; i < kBleuOrders; ++i) {
    matches[i] += other.matches[i];
    totals[i] += other.totals[i];
  }
  return *this;
}

double BleuScore::length_ratio() const {
  const auto reference = static_cast<double>(statistics.reference_length);
  return reference > 0 ? static_cast<double>(statistics.hypothesis_length) / reference : 0;
}

std::string BleuScore::details() const {
  return fmt::format("{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
                     precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, length_ratio(),
                     statistics.hypothesis_length, statistics.reference_length);
}

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options) {
  BleuScore result{.statistics = statistics};
  const auto hypothesis = static_cast<double>(statistics.hypothesis_length);
  const auto reference = static_cast<double>(statistics.reference_length);
  if (hypothesis < reference) result.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  bool any = false;
  for (const int64_t count : statistics.matches) any = any || count > 0;
  if (!any) return result;

  const double value = smooth_value_of(options);
  double halved = 1;
  int orders = kBleuOrders;
  for (int i = 0; i < kBleuOrders; ++i) {
    auto matches = static_cast<double>(statistics.matches[i]), total = static_cast<double>(statistics.totals[i]);
    if (options.smoothing == BleuSmoothing::kAddK && i > 0) {
      matches += value;
      total += value;
    }
    if (total == 0) break;
    if (options.effective_order) orders = i + 1;
    if (matches != 0) {
      result.precisions[i] = 100. * matches / total;
    } else if (options.smoothing == BleuSmoothing::kExp) {
      halved *= 2;
      result.precisions[i] = 100. / (halved * total);
    } else if (options.smoothing == BleuSmoothing::kFloor) {
      result.precisions[i] = 100. * value / total;
    }
  }
  double sum = 0;
  for (int i = 0; i < orders; ++i) {
    constexpr double kLogOfNothing = -9999999999;
    sum += result.precisions[i] == 0 ? kLogOfNothing : std::log(result.precisions[i]);
  }
  result.score = result.brevity_penalty * std::exp(sum / orders);
  return result;
}

std::string bleu_signature(const BleuOptions& options, int64_t references) {
  std::string smoothing = smoothing_of(options).name;
  if (smoothing_of(options).value) smoothing += fmt::format("[{:.2f}]", smooth_value_of(options));
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:brisk-{}",
                     references < 0 ? "var" : fmt::format("{}", references), options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", name_of(options.tokenizer), smoothing,
                     BRISK_VERSION_STRING);
}

int64_t common_references(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return a + b;
  return a == b ? a : -1;
}

void Bleu::read_words(std::string_view line, std::string& words) {
  std::string lower;
  if (options_.lowercase) line = lower = lowercase_text(line);
  tokenize_for_bleu(line, options_.tokenizer, words);
}

void Bleu::add(std::string_view hypothesis, std::span<const std::string_view> references) {
  BRISK_CHECK(!references.empty(), "a hypothesis without a reference");
  numbers_.clear();
  ngrams_.hypothesis().clear();
  read_words(hypothesis, hypothesis_words_);
  for_each_word(hypothesis_words_, [&](std::string_view word) { ngrams_.hypothesis().push_back(numbers_.add(word)); });
  std::vector<int64_t> lengths;
  for (size_t k = 0; k < references.size(); ++k) {
    std::vector<uint32_t>& words = ngrams_.reference(k);
    words.clear();
    read_words(references[k], reference_words_);
    for_each_word(reference_words_, [&](std::string_view word) { words.push_back(numbers_.find(word)); });
    lengths.push_back(static_cast<int64_t>(words.size()));
  }
  ngrams_.count(references.size(), kBleuOrders);
  const size_t length = ngrams_.hypothesis().size();
  BleuStatistics pair{.hypothesis_length = static_cast<int64_t>(length),
                      .reference_length = closest(static_cast<int64_t>(length), lengths)};
  for (int i = 0; i < kBleuOrders; ++i) {
    pair.matches[i] = ngrams_.clipped()[i];
    pair.totals[i] = NgramMatches::ngrams_in(length, i + 1);
  }
  statistics_ += pair;
  references_ = common_references(references_, static_cast<int64_t>(references.size()));
}

void Bleu::merge(const Bleu& other) {
  statistics_ += other.statistics_;
  references_ = common_references(references_, other.references_);
}

}  // namespace brisk
