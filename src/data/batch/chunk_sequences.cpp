#include "data/batch/chunk_sequences.h"

#include <cstddef>
#include <numeric>

namespace brisk {

void ChunkSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  const Chunk& chunk = chunks_[static_cast<size_t>(index)];
  MicroBatch::Set& rows = batch.sets[0];
  const size_t begin = rows.tokens.size(), end = begin + static_cast<size_t>(chunk.length);
  rows.tokens.resize(end);
  rows.targets.resize(end);
  rows.position.resize(end);
  stream_->copy(chunk.begin, chunk.length, rows.tokens.data() + begin);
  stream_->copy(chunk.begin + 1, chunk.length, rows.targets.data() + begin);
  std::iota(rows.position.begin() + static_cast<std::ptrdiff_t>(begin), rows.position.end(), 0);
  rows.sequence.resize(end, sequence);
  rows.end_sequence(end);
}

}  // namespace brisk
