// The word that a misspelled one probably means, for messages that ask "did you mean ...?".
//
//   nearest_word("btach_size", {"batch_size", "max_steps"});    // "batch_size"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

// How many letters to insert, delete, replace or swap with a neighbour to turn one word into the other.
int64_t edit_distance(std::string_view a, std::string_view b);

// The word nearest to `word`; empty if none is near enough to be a misspelling.
std::string nearest_word(const std::string& word, const std::vector<std::string>& words);

// The parts of nearest_word(). batch-size, batchSize and BATCH_SIZE are spellings of batch_size.
std::string plain_spelling(std::string_view name);
// A misspelling changes one or two letters, or a third of a long word.
bool near_enough(int64_t distance, size_t length);
// Whether the lengths allow it: avoids comparing a very long string with every option.
bool could_be_near(std::string_view word, std::string_view candidate);

}  // namespace brisk
