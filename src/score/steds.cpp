#include "score/steds.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "score/markdown_page.h"

namespace brisk {

namespace {

constexpr double kUnit = 4294967296.0;  // 2^32: sums of integers are the same in any order

}  // namespace

StedsStatistics& StedsStatistics::operator+=(const StedsStatistics& other) {
  pages += other.pages;
  similarity += other.similarity;
  return *this;
}

double steds_score(const StedsStatistics& statistics) {
  if (statistics.pages == 0) return 0;
  return 100 * (static_cast<double>(statistics.similarity) / kUnit / static_cast<double>(statistics.pages));
}

void Steds::add(std::string_view hypothesis, std::string_view reference) {
  const OrderedTree a = tree_of_markdown(hypothesis), b = tree_of_markdown(reference);
  const int nodes = std::max(a.size(), b.size());
  if (nodes > kMostNodes) {
    user_error("steds: a page has {} headings and lines, at most {} are compared; divide it, or leave steds out", nodes,
               kMostNodes);
  }
  const auto distance = static_cast<double>(distance_.between(a, b));
  statistics_ += {.pages = 1, .similarity = std::llround((1 - distance / nodes) * kUnit)};
}

}  // namespace brisk
