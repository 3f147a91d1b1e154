#include "data/read/aligned_reader.h"

#include <algorithm>
#include <cstring>

namespace brisk {

size_t AlignedReader::read(char* out, size_t size) {
  constexpr size_t kMergedAtATime = size_t{256} << 10;
  if (at_ == merged_.size()) {
    merged_.clear();
    at_ = 0;
    while (!ended_ && merged_.size() < kMergedAtATime) {
      ended_ = !lines_.next();
      if (ended_) break;
      merged_ += lines_.text(0);
      merged_ += kBetweenTexts;
      merged_ += lines_.text(1);
      merged_ += '\n';
    }
  }
  const size_t count = std::min(size, merged_.size() - at_);
  std::memcpy(out, merged_.data() + at_, count);
  at_ += count;
  return count;
}

}  // namespace brisk
