#include "base/text/spelling.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace brisk {

std::string plain_spelling(std::string_view name) {
  std::string result;
  for (const char letter : name) {
    if (letter == '-' || letter == ' ' || letter == '_') continue;
    result += static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  }
  return result;
}

bool near_enough(int64_t distance, size_t length) {
  return distance <= std::max<int64_t>(1, static_cast<int64_t>(length) / 3);
}

bool could_be_near(std::string_view word, std::string_view candidate) {
  return word.size() <= 2 * candidate.size() + 2 && candidate.size() <= 2 * word.size() + 64;
}

int64_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: a swap of neighbours looks two rows up.
  std::vector<int64_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  int64_t best_distance = std::numeric_limits<int64_t>::max();
  const std::string wanted = plain_spelling(word);
  for (const std::string& candidate : words) {
    const std::string spelled = plain_spelling(candidate);
    if (!could_be_near(wanted, spelled)) continue;
    const int64_t distance = edit_distance(wanted, spelled);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return near_enough(best_distance, word.size()) ? best : "";
}

}  // namespace brisk
