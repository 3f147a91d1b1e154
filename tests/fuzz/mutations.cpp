#include "fuzz/mutations.h"

#include <algorithm>
#include <cstring>

namespace brisk::fuzz {

namespace {

constexpr size_t kLongest = 1 << 18;

struct Part {
  size_t begin, size;
};

// The numbers, strings and words of a JSON text, and whatever looks like them in any other.
std::vector<Part> json_values(std::string_view text) {
  std::vector<Part> values;
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      values.push_back({at, end - at});
    } else if (is_plain(text[at])) {
      while (end < text.size() && is_plain(text[end])) ++end;
      values.push_back({at, end - at});
    }
    at = end;
  }
  return values;
}

std::string repeated(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

uint64_t Mutator::random(uint64_t below) {
  // splitmix64: the standard's distributions differ from library to library
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) % below;
}

std::string Mutator::next() {
  std::string text = seeds_[random(seeds_.size())];
  for (uint64_t changes = 1 + random(4); changes > 0; --changes) {
    if (random(8) == 0) {  // the beginning of one, the end of another
      const std::string& other = seeds_[random(seeds_.size())];
      const size_t cut = random(other.size() + 1);
      text = text.substr(0, random(text.size() + 1)) + other.substr(cut);
    } else {
      change(text);
    }
  }
  if (text.size() > kLongest) text.resize(kLongest);
  return text;
}

void Mutator::change(std::string& text) {
  if (text.empty()) {
    text.push_back(static_cast<char>(random(256)));
    return;
  }
  switch (random(4)) {
    case 0: return write_number(text);
    case 1: return change_bytes(text);
    default: return change_json(text);
  }
}

void Mutator::change_bytes(std::string& text) {
  const size_t at = random(text.size()), size = 1 + random(std::min<size_t>(text.size() - at, 64));
  switch (random(6)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random(8))); break;
    case 1: text[at] = static_cast<char>(random(256)); break;
    case 2: text.erase(at, size); break;
    case 3: text.insert(at, std::string(text, at, size)); break;
    case 4: text.resize(at); break;
    default: {
      const size_t from = random(text.size());
      const std::string moved = text.substr(from, size);
      text.replace(at, std::min(size, text.size() - at), moved);
    }
  }
}

// As binary formats have them: 1 to 8 bytes, the least significant first.
void Mutator::write_number(std::string& text) {
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          255,
                                          256,
                                          0x7FFF,
                                          0x7FFFFFFF,
                                          0x80000000,
                                          0xFFFFFFFF,
                                          0x100000000,
                                          0x7FC00000,
                                          0x7F800000,
                                          0x7FFFFFFFFFFFFFFF,
                                          0x8000000000000000,
                                          UINT64_MAX};
  const size_t at = random(text.size());
  uint64_t number = random(4) == 0 ? text.size() - at : one_of(kNumbers);
  if (random(3) == 0) number += random(9) - 4;
  std::memcpy(text.data() + at, &number, std::min<size_t>(text.size() - at, size_t{1} << random(4)));
}

void Mutator::change_json(std::string& text) {
  static const std::string kValues[] = {"0",
                                        "-1",
                                        "1",
                                        "0.5",
                                        "1e308",
                                        "1e400",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "2147483648",
                                        "null",
                                        "true",
                                        "false",
                                        "\"\"",
                                        "\"auto\"",
                                        "\"a\\n\\u0000\\\"\\u00e9\"",
                                        "\"\\ud83d\\ude00\"",
                                        "[]",
                                        "{}",
                                        "[[1],{\"a\":[2]}]",
                                        "{\"String\":\"a\"}",
                                        "{\"Regex\":\"(?<=(a|b)){2,5}|\\\\s+(?!\\\\S)\"}",
                                        "[0,0]"};
  const std::vector<Part> values = json_values(text);
  if (values.empty()) return change_bytes(text);
  const Part value = values[random(values.size())], other = values[random(values.size())];
  switch (random(8)) {
    case 0: {  // deeper than a stack
      const std::string nested = random(2) == 0 ? repeated("[", 50000) + repeated("]", 50000)
                                                : repeated("{\"a\":", 20000) + "1" + repeated("}", 20000);
      if (random(20) == 0) text.replace(value.begin, value.size, nested);
      break;
    }
    case 1:  // a long text or number
      text.replace(value.begin, value.size,
                   random(2) == 0 ? "\"" + repeated("ab ", 1 + random(3000)) + "\"" : repeated("9", 1 + random(400)));
      break;
    case 2:
    case 3: text.replace(value.begin, value.size, text.substr(other.begin, other.size)); break;
    case 4: {  // an element or a member once more
      const size_t end = text.find_first_of(",]}", value.begin + value.size);
      if (end == std::string::npos) break;
      text.insert(end, "," + text.substr(value.begin, end - value.begin));
      break;
    }
    default: text.replace(value.begin, value.size, one_of(kValues));
  }
}

}  // namespace brisk::fuzz
