// A histogram of document lengths in constant memory: exact up to 65,536 tokens, within 3 % above.
//
//   DocumentLengths lengths;
//   lengths.add(120);  lengths.add(40);
//   lengths.at_share(0.5);     // 40: half of the documents are at most this long
//   lengths.histogram();       // {33 to 64: 1 document, 40 tokens}, {65 to 128: 1 document, 120 tokens}
#pragma once

#include <cstdint>
#include <vector>

namespace brisk {

class DocumentLengths {
 public:
  struct Bar {
    int64_t from = 0, to = 0;  // lengths of 2^(k-1) + 1 to 2^k tokens
    int64_t documents = 0, tokens = 0;
  };

  void add(int64_t length);

  int64_t documents() const { return documents_; }
  int64_t tokens() const { return tokens_; }
  int64_t shortest() const { return shortest_; }
  int64_t longest() const { return longest_; }
  double mean() const { return documents_ > 0 ? static_cast<double>(tokens_) / static_cast<double>(documents_) : 0; }

  // Nearest rank: the smallest length that at least `share` of the documents do not exceed.
  int64_t at_share(double share) const;

  // From the shortest to the longest, no gaps; empty without documents.
  std::vector<Bar> histogram() const;

 private:
  std::vector<int64_t> counts_;  // of each length, then of ranges of lengths
  std::vector<Bar> bars_;        // by k
  int64_t documents_ = 0, tokens_ = 0, shortest_ = 0, longest_ = 0;
};

}  // namespace brisk
