// The token cache: a text is tokenized once, on all cores, into a memory-mapped file that later runs reuse.
//
//   Source source({.paths = {"corpus.txt"}});
//   TokenCache cache = open_token_cache(source, *tokenizer, cache_directory);
//   cache.stream->rows();                              // see data/token_store/token_stream.h
//   for (const std::string& note : cache.notes) say("{}", note);
//
// The file's name is a hash of the files' bytes, the document rule, the tokenizer's fingerprint and the format, so a
// change of any of these makes a new file and nothing is ever out of date. A truncated or damaged file is detected when
// it is opened (sizes and checksums) and made again. If the file exists, the documents are not read at all.
//
// It is made in constant memory, under a lock: if two jobs start together, one makes it and the other waits. The next
// process continues what a killed one had written (data/token_store/token_file.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/read/source.h"
#include "data/token_store/token_stream.h"
#include "text/tokenizer.h"

namespace brisk {

struct TokenCache {
  std::shared_ptr<const TokenStream> stream;
  std::string path;
  bool reused = false;             // the file existed
  bool resumed = false;            // a killed process had written a part of it
  std::vector<std::string> notes;  // how documents were read, what was rebuilt and why
};

// Called now and then on the calling thread while tokens are made; counts bytes of the files on disk.
using TokenizeProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// Creates `directory` if it is missing. Uses thread_pool(), so not from inside a run() of it.
// A process that is killed loses no more than `journal_seconds` of its work, nor, at the beginning, more than 4 MiB.
TokenCache open_token_cache(Source& source, const Tokenizer& tokenizer, const std::string& directory,
                            const TokenizeProgress& progress = {}, double journal_seconds = 5);

}  // namespace brisk
