#include "base/error.h"
#include "text/files/tokenizer_files.h"

namespace brisk {

MergeReader::MergeReader(const BpeModelParts& model, size_t prefix_size) : prefix_size_(prefix_size) {
  ids_.reserve(model.tokens.size());
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (!model.tokens[id].empty()) ids_.emplace(model.tokens[id], static_cast<TokenId>(id));
  }
}

TokenId MergeReader::id_of(const std::string& place, std::string_view left, std::string_view right,
                           std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) {
    user_error(
        "{}: the merge \"{} {}\" needs the token \"{}\", which is not in the vocabulary; the vocabulary and the merges "
        "must come from the same tokenizer: copy the file again",
        place, left, right, token);
  }
  return found->second;
}

void MergeReader::add(const std::string& place, std::string_view left, std::string_view right,
                      std::vector<Merge>& merges) {
  const TokenId left_id = id_of(place, left, right, left), right_id = id_of(place, left, right, right);
  std::string joined(left);
  joined += right.substr(std::min(prefix_size_, right.size()));
  const Merge merge = {left_id, right_id, id_of(place, left, right, joined), static_cast<uint32_t>(merges.size())};
  const uint64_t pair = static_cast<uint64_t>(left_id) << 32 | static_cast<uint32_t>(right_id);
  if (!seen_.insert(pair).second) {
    user_error("{}: the merge \"{} {}\" occurs twice; expected each merge once: copy the file again", place, left,
               right);
  }
  merges.push_back(merge);
}

void MergeReader::add(const std::string& place, std::string_view written, std::vector<Merge>& merges) {
  const size_t space = written.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == written.size() ||
      written.find(' ', space + 1) != std::string_view::npos) {
    user_error(
        "{}: found \"{}\"; expected two tokens with one space between them: the file is cut short, or not a list of "
        "merges; copy it again",
        place, written);
  }
  add(place, written.substr(0, space), written.substr(space + 1), merges);
}

}  // namespace brisk
