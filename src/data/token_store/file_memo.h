// Remembers facts about large files (hashes, checks) until they change, so that terabytes are not read at each start.
//
//   if (const auto hash = recall_about(folder, "/data/corpus.jsonl", "content")) return *hash;
//   remember_about(folder, "/data/corpus.jsonl", "content", hash);
//
// A file is unchanged while its path, size, inode and modification time (to the nanosecond) are. Files under 64 MiB are
// never remembered: reading them is quick, and a program may change one twice within the clock's tick.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace brisk {

std::optional<uint64_t> recall_about(const std::string& folder, const std::string& path, const std::string& what);

// Nothing where the file is small or changed within the last seconds. A folder that cannot be written to is no error.
void remember_about(const std::string& folder, const std::string& path, const std::string& what, uint64_t value,
                    int64_t least_bytes = int64_t{64} << 20);

}  // namespace brisk
