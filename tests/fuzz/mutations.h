// Changes to an input that a reader should survive: bytes flipped, cut, doubled and spliced, numbers at the ends of
// their range, and changes that keep JSON what it is while its values become other ones.
//
//   Mutator mutator(seeds, 1);                     // the same seeds and number: the same inputs, on every machine
//   const std::string input = mutator.next();
//   mutator.change(text);                          // one change to a text of one's own
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brisk::fuzz {

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, uint64_t number) : seeds_(std::move(seeds)), state_(number) {}

  std::string next();
  void change(std::string& text);

 private:
  uint64_t random(uint64_t below);
  template <typename T, size_t N>
  const T& one_of(const T (&choices)[N]) {
    return choices[random(N)];
  }
  void change_bytes(std::string& text);
  void write_number(std::string& text);
  void change_json(std::string& text);

  std::vector<std::string> seeds_;
  uint64_t state_;
};

}  // namespace brisk::fuzz
