#include "data/token_stream.h"

#include <cstring>

#include "base/error.h"

namespace brisk {

std::shared_ptr<const TokenStream> TokenStream::from_documents(const std::vector<std::vector<int32_t>>& documents,
                                                               int32_t end_of_document) {
  const std::shared_ptr<TokenStream> stream(new TokenStream);
  for (const std::vector<int32_t>& document : documents) {
    stream->owned_starts_.push_back(static_cast<int64_t>(stream->owned_tokens_.size()));
    stream->owned_tokens_.push_back(end_of_document);
    stream->owned_tokens_.insert(stream->owned_tokens_.end(), document.begin(), document.end());
  }
  stream->owned_starts_.push_back(static_cast<int64_t>(stream->owned_tokens_.size()));
  stream->owned_tokens_.push_back(end_of_document);
  stream->data_ = reinterpret_cast<const std::byte*>(stream->owned_tokens_.data());
  stream->tokens_ = static_cast<int64_t>(stream->owned_tokens_.size());
  stream->starts_ = stream->owned_starts_;
  return stream;
}

TokenStream::TokenStream(MappedFile file, int64_t tokens_offset, int64_t tokens, int token_bytes, int64_t starts_offset,
                         int64_t documents, std::string description)
    : file_(std::move(file)), token_bytes_(token_bytes), tokens_(tokens), description_(std::move(description)) {
  BRISK_CHECK(token_bytes == 2 || token_bytes == 4, "{} bytes a token", token_bytes);
  BRISK_CHECK(tokens_offset + tokens * token_bytes <= file_.size() && tokens_offset % 4 == 0, "tokens past the file");
  BRISK_CHECK(starts_offset + (documents + 1) * 8 <= file_.size() && starts_offset % 8 == 0, "starts past the file");
  data_ = file_.data() + tokens_offset;
  starts_ = {reinterpret_cast<const int64_t*>(file_.data() + starts_offset), static_cast<size_t>(documents + 1)};
}

int32_t TokenStream::token(int64_t index) const {
  int32_t value;
  copy(index, 1, &value);
  return value;
}

void TokenStream::copy(int64_t begin, int64_t count, int32_t* out) const {
  BRISK_CHECK(begin >= 0 && count >= 0 && begin + count <= tokens_, "tokens {} to {} of {}", begin, begin + count,
              tokens_);
  if (token_bytes_ == 4) {
    std::memcpy(out, data_ + begin * 4, static_cast<size_t>(count) * 4);
    return;
  }
  const uint16_t* tokens = reinterpret_cast<const uint16_t*>(data_) + begin;
  for (int64_t i = 0; i < count; ++i) out[i] = tokens[i];
}

}  // namespace brisk
