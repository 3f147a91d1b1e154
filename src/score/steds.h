// STEDS, the structure tree edit distance similarity of documents in Markdown (Liang et al., NAACL 2024): for each page
// 100 (1 - distance / nodes), where the distance is that of the trees of headings and lines (markdown_page.h), and nodes are
// those of the larger tree; and the mean of all pages. What the lines say is not compared, only where they stand.
//
//   Steds steds;
//   steds.add("# A\ntext", "# A\ntext\n# B\ntext");    // hypothesis, reference
//   steds.score()                                      // 66.67: 4 nodes of 6
//
// Statistics are sums of integers, and add up in any order.
#pragma once

#include <cstdint>
#include <string_view>

#include "score/tree_edit_distance.h"

namespace brisk {

struct StedsStatistics {
  int64_t pages = 0;
  int64_t similarity = 0;  // of all pages, in units of 2^-32

  StedsStatistics& operator+=(const StedsStatistics& other);
  bool operator==(const StedsStatistics&) const = default;
};

double steds_score(const StedsStatistics& statistics);  // 100 for the same structure; without pages 0

class Steds {
 public:
  // A page of more lines than that is a UserError: the time it takes grows with their square.
  static constexpr int kMostNodes = 10000;

  void add(std::string_view hypothesis, std::string_view reference);
  void merge(const Steds& other) { merge(other.statistics_); }
  void merge(const StedsStatistics& other) { statistics_ += other; }  // of another process

  const StedsStatistics& statistics() const { return statistics_; }
  double score() const { return steds_score(statistics_); }

 private:
  StedsStatistics statistics_;
  TreeEditDistance distance_;
};

}  // namespace brisk
