// A key of another program's configuration that is no option here: what it gets for an answer.
//
//   const std::vector<ForeignKey> keys = {
//       {"group_by_length", [](const std::string&) { return ForeignAnswer::ignored("nothing is padded here"); }}};
//   read_options(options, text, "job.json", overrides, keys);   // result.notes: "job.json: ignored: group_by_length:
//                                                               // nothing is padded here"
//
// Such a key is understood in any section. Another spelling of an option is no foreign key (Option::also).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace brisk {

struct ForeignAnswer {
  enum class Verdict : uint8_t {
    used,     // it sets options, in place of what the same file says of them
    ignored,  // it has no effect, and need not have
    refused   // what it asks for would change the result, and is not done
  };

  static ForeignAnswer used(std::string option, std::string json) {
    return {Verdict::used, "", {{std::move(option), std::move(json)}}};
  }
  static ForeignAnswer ignored(std::string reason) { return {Verdict::ignored, std::move(reason), {}}; }
  static ForeignAnswer refused(std::string reason) { return {Verdict::refused, std::move(reason), {}}; }

  Verdict verdict;
  std::string reason;                                         // why, and what to do instead
  std::vector<std::pair<std::string, std::string>> settings;  // used: options by path, and their values in JSON
};

struct ForeignKey {
  std::string name;                                              // without a section
  std::function<ForeignAnswer(const std::string& json)> answer;  // to its value
};

}  // namespace brisk
