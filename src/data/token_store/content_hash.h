// A hash of the bytes of a file, by which what was made of it is found again.
//
//   uint64_t hash = file_content_hash("corpus.jsonl", cache_directory);
//
// The hash of a large file is kept in `memo_directory` (data/token_store/file_memo.h), where one is given, so that a corpus of
// terabytes is not read at each start.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

uint64_t file_content_hash(const std::string& path, const std::string& memo_directory);

// The same for text whose CR LF is read as LF. It is another hash than the one above where there is such a line end, or
// may be one (in a compressed file): what was made of the text when CR was a character like any other is not found.
uint64_t text_content_hash(const std::string& path, const std::string& memo_directory);

}  // namespace brisk
