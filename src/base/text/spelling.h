// Which word was meant: for messages that say "did you mean ...?".
//
//   nearest_word("btach_size", {"batch_size", "max_steps"});    // "batch_size"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

// Letters to insert, delete, replace or swap with a neighbour to make one word of the other.
int64_t edit_distance(std::string_view a, std::string_view b);

// The word nearest to `word`; empty where none is near enough to be a slip.
std::string nearest_word(const std::string& word, const std::vector<std::string>& words);

// What nearest_word() is made of. batch-size, batchSize and BATCH_SIZE differ from batch_size by habit, not by meaning.
std::string plain_spelling(std::string_view name);
// A slip changes a letter or two, or a third of a long word.
bool near_enough(int64_t distance, size_t length);
// Whether the lengths leave a chance: a book in the place of a key is not compared letter by letter to every option.
bool could_be_near(std::string_view word, std::string_view candidate);

}  // namespace brisk
