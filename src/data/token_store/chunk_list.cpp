#include "data/token_store/chunk_list.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

ChunkList::ChunkList(std::vector<Chunk> chunks) {
  const auto held = std::make_shared<const std::vector<Chunk>>(std::move(chunks));
  chunks_ = *held;
  memory_ = held;
  for (const Chunk& chunk : chunks_) count(chunk);
}

void ChunkList::count(const Chunk& chunk) {
  rows_ += chunk.length;
  longest_ = std::max<int64_t>(longest_, chunk.length);
  squared_rows_ += static_cast<double>(chunk.length) * chunk.length;
}

ChunkListBuilder::ChunkListBuilder(std::string directory, size_t most_in_memory)
    : directory_(std::move(directory)), most_in_memory_(most_in_memory) {}

void ChunkListBuilder::spill() {
  if (!file_) {
    std::string name = directory_ + "/sequences-XXXXXX";
    const int number = ::mkstemp(name.data());  // only for a name that nobody has
    if (number < 0) user_error("{}: cannot create it: {}", name, explain_errno(errno));
    ::close(number);
    file_ = std::make_unique<AppendFile>(name);
  }
  file_->write(chunks_.data(), static_cast<int64_t>(chunks_.size() * sizeof(Chunk)));
  spilled_ += std::ssize(chunks_);
  chunks_.clear();
}

ChunkList ChunkListBuilder::finish() && {
  if (!file_) return {std::move(chunks_)};
  spill();
  const auto map = std::make_shared<const MappedFile>(file_->path());
  remove_file(file_->path());  // the map keeps it until the last list is gone
  list_.chunks_ = {reinterpret_cast<const Chunk*>(map->data()), static_cast<size_t>(spilled_)};
  list_.memory_ = map;
  return std::move(list_);
}

}  // namespace brisk
