// A file of the token cache, opened where it is there and made where it is not: once, however many jobs ask for it.
//
//   TokenCache cache = open_or_make_tokens(directory, key, vocab_size, [&](TokenFileWriter& writer) {
//     ...                                  // from writer.resumed_at() on
//     in_cache([&] { writer.commit(end_of_document, description); });
//   });
//
// The key says everything that decides what is in the file. It is made under a lock, to the side; what a killed process
// made of it stays for the next one, what a UserError ended is removed, and what is damaged is made again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "data/token_store/token_cache.h"
#include "data/token_store/token_file.h"

namespace brisk {

TokenCache open_or_make_tokens(const std::string& directory, uint64_t key, int64_t vocab_size,
                               const std::function<void(TokenFileWriter& writer)>& make);

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
