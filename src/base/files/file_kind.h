// How large a file may be that is read whole into memory, by what it is. The limits are many times what such files have;
// what is larger is another file, a damaged one, or one made to fill the memory.
//
//   const std::string text = read_file(path, file_kind::config);
//   // UserError: "config.json: it has 3.00 TiB, and a model's configuration has at most 64.0 MiB; ..."
#pragma once

#include <cstdint>

namespace brisk {

struct FileKind {
  const char* name;  // in a message: "a job"
  int64_t most_bytes;
};

namespace file_kind {

inline constexpr int64_t kMebibyte = int64_t{1} << 20;

inline constexpr FileKind job = {"a job", 16 * kMebibyte};
inline constexpr FileKind config = {"a model's configuration", 64 * kMebibyte};
inline constexpr FileKind index = {"an index of weight files", 64 * kMebibyte};
inline constexpr FileKind tokenizer = {"a tokenizer's file", 256 * kMebibyte};
inline constexpr FileKind labels = {"a list of labels", 64 * kMebibyte};
inline constexpr FileKind state = {"a checkpoint's state", 64 * kMebibyte};
inline constexpr FileKind summary = {"a run's summary", 16 * kMebibyte};
inline constexpr FileKind evaluation = {"the results of an evaluation", 256 * kMebibyte};
inline constexpr FileKind events = {"a TensorBoard file", 2048 * kMebibyte};
inline constexpr FileKind cache_note = {"a note of the cache", 64 * kMebibyte};
inline constexpr FileKind tuning = {"a list of tuned choices", 64 * kMebibyte};
inline constexpr FileKind prompt = {"a prompt", 16 * kMebibyte};
inline constexpr FileKind output_of_command = {"the output of a command", 64 * kMebibyte};

// Read line by line (base/files/lines.h), so that only a line has to fit into memory.
inline constexpr FileKind log = {"a run's log", 16384 * kMebibyte};
inline constexpr int64_t kLongestLogLine = 4 * kMebibyte;

}  // namespace file_kind

}  // namespace brisk
