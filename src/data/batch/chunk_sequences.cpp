#include "data/batch/chunk_sequences.h"

#include <algorithm>
#include <numeric>

namespace brisk {

void ChunkSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  const Chunk& chunk = chunks_[static_cast<size_t>(index)];
  const size_t begin = batch.tokens.size();
  const auto length = static_cast<size_t>(chunk.length);
  batch.tokens.resize(begin + length);
  batch.targets.resize(begin + length);
  batch.position.resize(begin + length);
  stream_->copy(chunk.begin, chunk.length, batch.tokens.data() + begin);
  stream_->copy(chunk.begin + 1, chunk.length, batch.targets.data() + begin);
  std::iota(batch.position.begin() + static_cast<std::ptrdiff_t>(begin), batch.position.end(), 0);
  batch.sequence.resize(begin + length, sequence);
  batch.starts.push_back(static_cast<int32_t>(begin + length));
  batch.longest = std::max<int64_t>(batch.longest, chunk.length);
}

}  // namespace brisk
