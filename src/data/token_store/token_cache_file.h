// Opens a file of the token cache, or makes it if it does not exist: once, however many jobs ask for it.
//
//   TokenCache cache = open_or_make_tokens(directory, key, vocab_size, source.unchanged(), [&](TokenFileWriter& writer) {
//     ...                                  // from writer.resumed_at() on
//     in_cache([&] { writer.commit(end_of_document, description); });
//   });
//
// The key covers everything that determines the contents: a hash of the bytes of `files` among it. A file that changed
// since then is refused before the token file is kept, so its name proves what it was made from. The file is made under a lock and a temporary name. The next
// process continues what a killed one wrote; after a UserError the partial file is removed; a damaged file is made
// again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "data/read/unchanged_files.h"
#include "data/token_store/token_cache.h"
#include "data/token_store/token_file.h"

namespace brisk {

TokenCache open_or_make_tokens(const std::string& directory, uint64_t key, int64_t vocab_size,
                               const UnchangedFiles& files, const std::function<void(TokenFileWriter& writer)>& make);

// Errors of the cache's own files also say how to choose another folder; those of the data do not.
template <typename Body>
auto in_cache(const Body& body) {
  try {
    return body();
  } catch (const UserError& error) {
    user_error("{} (the token cache; data.cache_dir chooses another folder)", error.what());
  }
}

}  // namespace brisk
