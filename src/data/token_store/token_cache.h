// Tokens are made once, on all cores, and kept in a memory-mapped file for every later run.
//
//   Source source({.paths = {"corpus.txt"}});
//   TokenCache cache = open_token_cache(source, *tokenizer, cache_directory);
//   cache.stream->rows();                              // see data/token_store/token_stream.h
//   for (const std::string& note : cache.notes) say("{}", note);
//
// The file's name is a hash of the files' bytes, the document rule, the tokenizer's fingerprint and the format, so a
// change of any of these makes a new file and nothing is ever out of date. A file that is cut short or damaged is found
// out when it is opened (sizes and checksums) and made again. When the file is there, the documents are not read at
// all.
//
// It is made in constant memory, under a lock: of two jobs that start at once, one makes it and the other waits. What a
// killed process made of it stays, and the next one goes on from there (data/token_store/token_file.h).
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
  bool reused = false;             // the file was there
  bool resumed = false;            // a part of it was, of a process that was killed
  std::vector<std::string> notes;  // how documents were read, what was rebuilt and why
};

// Called now and then from the calling thread while tokens are made; bytes of the files on the disk.
using TokenizeProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// Makes `directory` where it is missing. Uses thread_pool(), so not from inside a run() of it.
// A process that is killed loses no more than `journal_seconds` of its work.
TokenCache open_token_cache(Source& source, const Tokenizer& tokenizer, const std::string& directory,
                            const TokenizeProgress& progress = {}, double journal_seconds = 5);

}  // namespace brisk
