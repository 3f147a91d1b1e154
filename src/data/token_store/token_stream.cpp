#include "data/token_store/token_stream.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/token_store/text_hash.h"

namespace brisk {

std::shared_ptr<const TokenStream> TokenStream::from_documents(const std::vector<std::vector<int32_t>>& documents,
                                                               int32_t end_of_document) {
  const auto data = std::make_shared<Data>();
  for (const std::vector<int32_t>& document : documents) {
    data->owned_starts.push_back(std::ssize(data->owned_tokens));
    data->owned_hashes.push_back(
        text_hash({reinterpret_cast<const char*>(document.data()), document.size() * sizeof(int32_t)}));
    data->owned_tokens.push_back(end_of_document);
    data->owned_tokens.insert(data->owned_tokens.end(), document.begin(), document.end());
  }
  data->owned_starts.push_back(std::ssize(data->owned_tokens));
  data->owned_tokens.push_back(end_of_document);
  data->tokens = reinterpret_cast<const std::byte*>(data->owned_tokens.data());
  data->count = std::ssize(data->owned_tokens);
  data->starts = data->owned_starts;
  data->hashes = data->owned_hashes;
  const std::shared_ptr<TokenStream> stream(new TokenStream);
  stream->add(data);
  return stream;
}

TokenStream::TokenStream(MappedFile file, const Layout& layout, std::string description, std::string path)
    : description_(std::move(description)) {
  const auto data = std::make_shared<Data>();
  data->file = std::move(file);
  data->path = std::move(path);
  const int64_t size = data->file.size();
  BRISK_CHECK(layout.token_bytes == 2 || layout.token_bytes == 4, "{} bytes a token", layout.token_bytes);
  BRISK_CHECK(layout.tokens_offset + layout.tokens * layout.token_bytes <= size && layout.tokens_offset % 4 == 0,
              "tokens past the file");
  BRISK_CHECK(layout.starts_offset + (layout.documents + 1) * 8 <= size && layout.starts_offset % 8 == 0,
              "starts past the file");
  BRISK_CHECK(layout.hashes_offset + layout.documents * 8 <= size && layout.hashes_offset % 8 == 0,
              "hashes past the file");
  const std::byte* bytes = data->file.data();
  const auto documents = static_cast<size_t>(layout.documents);
  data->tokens = bytes + layout.tokens_offset;
  data->count = layout.tokens;
  data->token_bytes = layout.token_bytes;
  data->largest_token = static_cast<int32_t>(layout.vocab_size - 1);
  data->starts = {reinterpret_cast<const int64_t*>(bytes + layout.starts_offset), documents + 1};
  data->hashes = {reinterpret_cast<const uint64_t*>(bytes + layout.hashes_offset), documents};
  add(data);
}

std::shared_ptr<const TokenStream> TokenStream::join(const std::vector<std::shared_ptr<const TokenStream>>& streams) {
  const std::shared_ptr<TokenStream> joined(new TokenStream);
  for (const auto& stream : streams) {
    for (const Part& part : stream->parts_) joined->add(part.data);
    if (!stream->description_.empty()) {
      joined->description_ += (joined->description_.empty() ? "" : "\n") + stream->description_;
    }
  }
  return joined;
}

void TokenStream::add(std::shared_ptr<const Data> data) {
  parts_.push_back({data, tokens_, documents_});
  tokens_ += data->count;
  documents_ += std::ssize(data->hashes);
}

const TokenStream::Part& TokenStream::part_of_document(int64_t document) const {
  if (parts_.size() == 1) return parts_[0];
  const auto after = [](int64_t number, const Part& part) { return number < part.first_document; };
  return *(std::upper_bound(parts_.begin(), parts_.end(), document, after) - 1);
}

const TokenStream::Part& TokenStream::part_of_token(int64_t index) const {
  if (parts_.size() == 1) return parts_[0];
  const auto after = [](int64_t number, const Part& part) { return number < part.first_token; };
  return *(std::upper_bound(parts_.begin(), parts_.end(), index, after) - 1);
}

TokenStream::Rows TokenStream::document_rows(int64_t document) const {
  const Part& part = part_of_document(document);
  const auto number = static_cast<size_t>(document - part.first_document);
  return {part.first_token + part.data->starts[number], part.first_token + part.data->starts[number + 1]};
}

uint64_t TokenStream::document_hash(int64_t document) const {
  const Part& part = part_of_document(document);
  return part.data->hashes[static_cast<size_t>(document - part.first_document)];
}

int32_t TokenStream::token(int64_t index) const {
  int32_t value;
  copy(index, 1, &value);
  return value;
}

void TokenStream::copy(int64_t begin, int64_t count, int32_t* out) const {
  BRISK_CHECK(begin >= 0 && count >= 0 && begin + count <= tokens_, "tokens {} to {} of {}", begin, begin + count,
              tokens_);
  if (count == 0) return;
  const Part& part = part_of_token(begin);
  const int64_t first = begin - part.first_token;
  BRISK_CHECK(first + count <= part.data->count, "tokens {} to {} of a part of {}", first, first + count,
              part.data->count);
  part.data->file.check_size();
  if (part.data->token_bytes == 4) {
    std::memcpy(out, part.data->tokens + first * 4, static_cast<size_t>(count) * 4);
  } else {
    const uint16_t* tokens = reinterpret_cast<const uint16_t*>(part.data->tokens) + first;
    for (int64_t i = 0; i < count; ++i) out[i] = tokens[i];
  }
  // One pass that vectorises. An id past the vocabulary would be read past the end of the embedding.
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<uint32_t>(out[i]));
  if (largest > static_cast<uint32_t>(part.data->largest_token)) {
    user_error("{}: damaged since it was made: token {} near {}, of a vocabulary of {}; remove the file",
               part.data->path, largest, first, part.data->largest_token + 1);
  }
}

}  // namespace brisk
