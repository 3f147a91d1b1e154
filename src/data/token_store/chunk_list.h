// The sequences of a corpus: a list that lies in memory while it is short and in a file when it is long.
//
//   ChunkListBuilder builder(cache_directory);
//   builder.add({0, 128});  builder.add({128, 40});  ...
//   ChunkList chunks = std::move(builder).finish();
//   chunks[1].length;   chunks.rows();   for (const Chunk& chunk : chunks) ...
//
// A list of more than a million goes to a file that has no name and is gone with the list, and is mapped: the kernel
// keeps what is used of it in its cache. Copies share it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/append_file.h"

namespace brisk {

// Rows begin .. begin + length - 1 of a token stream: one training sequence.
struct Chunk {
  int64_t begin = 0;
  int32_t length = 0;
  bool operator==(const Chunk&) const = default;
};

class ChunkList {
 public:
  ChunkList() = default;
  ChunkList(std::vector<Chunk> chunks);  // NOLINT: a vector is a list wherever one is asked for

  size_t size() const { return chunks_.size(); }
  bool empty() const { return chunks_.empty(); }
  const Chunk& operator[](size_t index) const { return chunks_[index]; }
  const Chunk* begin() const { return chunks_.data(); }
  const Chunk* end() const { return chunks_.data() + chunks_.size(); }

  int64_t rows() const { return rows_; }
  int64_t longest() const { return longest_; }           // 0 of no chunks
  double squared_rows() const { return squared_rows_; }  // the sum of the squares of the lengths

  // A copy in memory.
  operator std::vector<Chunk>() const { return {begin(), end()}; }  // NOLINT: as a vector was, where one is asked for
  bool operator==(const std::vector<Chunk>& other) const { return std::vector<Chunk>(*this) == other; }

 private:
  friend class ChunkListBuilder;
  void count(const Chunk& chunk);

  std::shared_ptr<const void> memory_;  // what holds the chunks
  std::span<const Chunk> chunks_;
  int64_t rows_ = 0, longest_ = 0;
  double squared_rows_ = 0;
};

class ChunkListBuilder {
 public:
  static constexpr size_t kMostInMemory = size_t{1} << 20;

  // The folder for long lists; "" if none is, and lists stay in memory.
  explicit ChunkListBuilder(std::string directory = "", size_t most_in_memory = kMostInMemory);

  void add(const Chunk& chunk) {
    list_.count(chunk);
    chunks_.push_back(chunk);
    if (chunks_.size() >= most_in_memory_ && !directory_.empty()) spill();
  }
  int64_t size() const { return spilled_ + std::ssize(chunks_); }
  int64_t rows() const { return list_.rows(); }

  ChunkList finish() &&;

 private:
  void spill();

  std::string directory_;
  size_t most_in_memory_;
  ChunkList list_;  // its counts, so far
  std::vector<Chunk> chunks_;
  std::unique_ptr<AppendFile> file_;
  int64_t spilled_ = 0;
};

}  // namespace brisk
