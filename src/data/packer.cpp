#include "data/packer.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace brisk {

namespace {

void append(const TokenStream& stream, const Chunk& chunk, int32_t sequence, MicroBatch& batch) {
  const size_t begin = batch.tokens.size();
  const auto length = static_cast<size_t>(chunk.length);
  batch.tokens.resize(begin + length);
  batch.targets.resize(begin + length);
  batch.position.resize(begin + length);
  stream.copy(chunk.begin, chunk.length, batch.tokens.data() + begin);
  stream.copy(chunk.begin + 1, chunk.length, batch.targets.data() + begin);
  std::iota(batch.position.begin() + static_cast<std::ptrdiff_t>(begin), batch.position.end(), 0);
  batch.sequence.resize(begin + length, sequence);
  batch.starts.push_back(static_cast<int32_t>(begin + length));
  batch.longest = std::max<int64_t>(batch.longest, chunk.length);
}

// Longest first, each to the emptiest of `parts`; false where one would overflow.
bool divide_into(std::span<const Chunk> chunks, std::span<const int32_t> longest_first, int64_t capacity, size_t parts,
                 std::vector<std::vector<int32_t>>& members) {
  members.assign(parts, {});
  std::vector<int64_t> rows(parts, 0);
  for (const int32_t number : longest_first) {
    const auto emptiest = static_cast<size_t>(std::min_element(rows.begin(), rows.end()) - rows.begin());
    rows[emptiest] += chunks[static_cast<size_t>(number)].length;
    if (rows[emptiest] > capacity) return false;
    members[emptiest].push_back(number);
  }
  return true;
}

}  // namespace

std::vector<std::vector<int32_t>> divide_step(std::span<const Chunk> chunks, int64_t micro_batch_tokens) {
  std::vector<std::vector<int32_t>> members;
  if (chunks.empty()) return members;
  int64_t rows = 0;
  for (const Chunk& chunk : chunks) {
    BRISK_CHECK(chunk.length <= micro_batch_tokens, "a sequence of {} tokens, micro-batches of {}", chunk.length,
                micro_batch_tokens);
    rows += chunk.length;
  }
  std::vector<int32_t> order(chunks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return chunks[static_cast<size_t>(a)].length > chunks[static_cast<size_t>(b)].length;
  });
  auto parts = static_cast<size_t>((rows + micro_batch_tokens - 1) / micro_batch_tokens);
  while (!divide_into(chunks, order, micro_batch_tokens, parts, members)) ++parts;
  for (std::vector<int32_t>& part : members) std::sort(part.begin(), part.end());
  // Micro-batches in the order of their first sequences: an order that does not depend on the lengths alone.
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  return members;
}

MicroBatch pack(const TokenStream& stream, std::span<const Chunk> chunks, std::span<const int32_t> members,
                int32_t first_sequence) {
  MicroBatch batch;
  batch.clear();
  size_t rows = 0;
  for (const int32_t number : members) rows += static_cast<size_t>(chunks[static_cast<size_t>(number)].length);
  for (std::vector<int32_t>* column : {&batch.tokens, &batch.targets, &batch.position, &batch.sequence}) {
    column->reserve(rows);
  }
  for (const int32_t number : members) {
    append(stream, chunks[static_cast<size_t>(number)], first_sequence + number, batch);
  }
  return batch;
}

std::vector<MicroBatch> pack_step(const TokenStream& stream, std::span<const Chunk> chunks,
                                  int64_t micro_batch_tokens) {
  std::vector<MicroBatch> batches;
  for (const std::vector<int32_t>& members : divide_step(chunks, micro_batch_tokens)) {
    batches.push_back(pack(stream, chunks, members));
  }
  return batches;
}

EvaluationPacker::EvaluationPacker(const TokenStream& stream, std::span<const Chunk> chunks, int64_t micro_batch_tokens)
    : stream_(stream), chunks_(chunks), micro_batch_tokens_(micro_batch_tokens) {}

bool EvaluationPacker::next(MicroBatch& batch) {
  const auto count = static_cast<int64_t>(chunks_.size());
  if (at_ == count) return false;
  batch.clear();
  for (; at_ < count; ++at_) {
    const Chunk& chunk = chunks_[static_cast<size_t>(at_)];
    BRISK_CHECK(chunk.length <= micro_batch_tokens_, "a sequence of {} tokens, micro-batches of {}", chunk.length,
                micro_batch_tokens_);
    if (batch.rows() + chunk.length > micro_batch_tokens_) break;
    append(stream_, chunk, static_cast<int32_t>(at_), batch);
  }
  return true;
}

}  // namespace brisk
