// What the tests of tokenizer files do all the time.
//
//   EXPECT_EQ(encode(*load_tokenizer(path), "the cat"), (std::vector<TokenId>{5, 6}));
//   EXPECT_EQ(load_error(other), "");
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace brisk::testing {

inline std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer.encode(text, ids);
  return ids;
}

// The message of the UserError that loading `path` throws; empty if it throws none.
inline std::string load_error(const std::string& path) {
  return test::message_of<UserError>([&] { load_tokenizer(path); });
}

}  // namespace brisk::testing
