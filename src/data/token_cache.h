// Tokens are made once, on all cores, and kept in a memory-mapped file for every later run.
//
//   Source source({.paths = {"corpus.txt"}});
//   TokenCache cache = open_token_cache(source, *tokenizer, cache_directory);
//   cache.stream->rows();                              // see data/token_stream.h
//   for (const std::string& note : cache.notes) say("{}", note);
//
// The file's name is a hash of the files' bytes, the document rule, the tokenizer's fingerprint and the format, so a
// change of any of these makes a new file and nothing is ever out of date. It is written to the side and renamed; a
// file that is cut short or damaged is found out when it is opened (sizes and checksums) and made again.
// When the file is there, the documents are not read at all: the cost is one hash over the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/source.h"
#include "data/token_stream.h"
#include "text/tokenizer.h"

namespace brisk {

struct TokenCache {
  std::shared_ptr<const TokenStream> stream;
  std::string path;
  bool reused = false;             // the file was there
  std::vector<std::string> notes;  // how documents were read, what was rebuilt and why
};

// Called now and then from the calling thread while tokens are made.
using TokenizeProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// Makes `directory` where it is missing. Uses Team::instance(), so not from inside a run() of it.
TokenCache open_token_cache(Source& source, const Tokenizer& tokenizer, const std::string& directory,
                            const TokenizeProgress& progress = {});

// $XDG_CACHE_HOME/brisk, or ~/.cache/brisk, or a folder under /tmp for a user without a home.
std::string default_cache_directory();

}  // namespace brisk
