// The one way to read JSON that others wrote. It is limited in depth (a tree is copied and written by recursion) and in the
// number of values, takes time linear in the text (nlohmann's ordered objects compare each key with all before it), and
// refuses an object that has a key twice, of which other readers silently drop one.
//
//   const auto config = parse_json(read_file(path, file_kind::config), path, "fetch the file again");
//   // UserError: "config.json: not valid JSON at byte 12 of 340: unexpected end of input; fetch the file again"
//
//   const auto line = parse_json_or_discard(text);      // is_discarded(): it is no such JSON
//
// scripts/check_modules.sh sees to it that nothing else calls nlohmann's parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

struct JsonLimits {
  int64_t depth = 100;              // of objects and lists; ten are usual
  int64_t values = 8'000'000;       // in all, 70 bytes each or less; the largest tokenizers have two million
  int64_t keys_of_one = INT64_MAX;  // object
};

// A line of a run's log. Its keys are compared with each other and with those of other lines.
inline constexpr JsonLimits kLogLineJson = {.depth = 16, .values = 100'000, .keys_of_one = 200};

struct JsonProblem {
  std::string what;  // "unexpected end of input"
  size_t byte = 0;   // from 1; 0: of the whole text
};

// Json is nlohmann::ordered_json or, with keys in the order of their letters, nlohmann::json.

// JSON that a program wrote: what is wrong in it is damage. `fix` ends the message of the UserError.
template <typename Json = nlohmann::ordered_json>
Json parse_json(std::string_view text, const std::string& source, std::string_view fix, const JsonLimits& limits = {});

// A discarded value where it is not JSON within the limits; `problem` then says why.
template <typename Json = nlohmann::ordered_json>
Json parse_json_or_discard(std::string_view text, const JsonLimits& limits = {}, JsonProblem* problem = nullptr);

// JSON that a person wrote: comments are allowed, errors name line, column and the likely slip, and a key that is given
// twice is put into `problems`, as the others that a job has.
//
//   std::vector<std::string> problems;
//   const auto root = parse_job_json(text, "job.json", problems);
//   // UserError: "job.json:3:1: ...; remove the comma before it"
nlohmann::ordered_json parse_job_json(std::string_view text, const std::string& source,
                                      std::vector<std::string>& problems);

constexpr size_t kMostProblems = 50;  // more would not be read

// JSON that brisk itself made a moment ago: any problem is an internal error.
template <typename Json = nlohmann::ordered_json>
Json parse_own_json(std::string_view text);

// What a message shows of a value: "an object {...}", "a list [...]", "32", "\"text\"" (base/text/printable.h).
template <typename Json>
std::string json_in_message(const Json& value);

}  // namespace brisk
