#include "data/token_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "data/pieces.h"
#include "data/token_file.h"
#include "text/hash.h"
#include "text/words.h"

namespace brisk {

namespace {

// A piece of work for one core. Short documents share a piece, a long one is cut into several where the tokenizer
// allows.
constexpr size_t kPieceBytes = size_t{128} << 10;
// Pieces tokenised before they are written: bounds the memory to a few times this, whatever the corpus.
constexpr size_t kWaveBytes = size_t{32} << 20;
// Text on each side of a cut that is tokenised both ways to see that the cut changes nothing.
constexpr size_t kCutContext = 200;

// One part of a document.
struct Part {
  std::string_view text;
  bool opens_document;
};

struct Piece {
  std::vector<Part> parts;
  size_t bytes = 0;
  std::vector<TokenId> tokens;
  std::vector<size_t> ends;  // of each part, in tokens
};

// Byte-level BPE never merges across words, so its texts may be cut between them; a vocabulary that writes something
// before each text, or merges across words, may not. The tokenizer is asked by example, on the text at hand.
bool cut_changes_nothing(const Tokenizer& tokenizer, std::string_view text, size_t cut) {
  const auto is_inside_character = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  size_t begin = cut - std::min(cut, kCutContext);
  size_t end = std::min(text.size(), cut + kCutContext);
  while (begin > 0 && is_inside_character(begin)) --begin;
  while (end < text.size() && is_inside_character(end)) ++end;
  std::vector<TokenId> whole, parts;
  tokenizer.encode(text.substr(begin, end - begin), whole);
  tokenizer.encode(text.substr(begin, cut - begin), parts);
  tokenizer.encode(text.substr(cut, end - cut), parts);
  return whole == parts;
}

std::vector<std::string_view> cut_document(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (text.size() - begin > 2 * kPieceBytes) {
    const size_t cut = cut_between_words(text, begin + kPieceBytes);
    if (cut >= text.size() || !cut_changes_nothing(tokenizer, text, cut)) break;
    parts.push_back(text.substr(begin, cut - begin));
    begin = cut;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Tokenises documents in waves: a wave on all cores, then written in order.
class TokenizeWaves {
 public:
  TokenizeWaves(const Tokenizer& tokenizer, TokenId end_of_document, TokenFileWriter& writer,
                const TokenizeProgress& progress, int64_t bytes_total)
      : tokenizer_(tokenizer),
        end_of_document_(end_of_document),
        writer_(writer),
        progress_(progress),
        bytes_total_(bytes_total) {}

  void add(std::string_view document) {
    bool opens = true;
    for (const std::string_view text : cut_document(tokenizer_, document)) {
      add_part({text, opens});
      opens = false;
    }
  }

  void run() {
    run_pieces(static_cast<int64_t>(pieces_.size()), [&](int64_t index) {
      Piece& piece = pieces_[static_cast<size_t>(index)];
      piece.tokens.reserve(piece.bytes / 3);
      for (const Part& part : piece.parts) {
        tokenizer_.encode(part.text, piece.tokens);
        piece.ends.push_back(piece.tokens.size());
      }
    });
    for (const Piece& piece : pieces_) {
      size_t begin = 0;
      for (size_t i = 0; i < piece.parts.size(); ++i) {
        if (piece.parts[i].opens_document) writer_.begin_document(end_of_document_);
        writer_.append(std::span(piece.tokens).subspan(begin, piece.ends[i] - begin));
        begin = piece.ends[i];
      }
    }
    bytes_done_ += static_cast<int64_t>(waiting_);
    if (progress_ && waiting_ > 0) progress_(bytes_done_, bytes_total_);
    pieces_.clear();
    waiting_ = 0;
  }

 private:
  void add_part(const Part& part) {
    if (pieces_.empty() || pieces_.back().bytes + part.text.size() > kPieceBytes) pieces_.emplace_back();
    pieces_.back().parts.push_back(part);
    pieces_.back().bytes += part.text.size();
    waiting_ += part.text.size();
    if (waiting_ >= kWaveBytes) run();
  }

  const Tokenizer& tokenizer_;
  TokenId end_of_document_;
  TokenFileWriter& writer_;
  const TokenizeProgress& progress_;
  int64_t bytes_done_ = 0, bytes_total_;
  std::vector<Piece> pieces_;
  size_t waiting_ = 0;
};

void write_tokens(Source& source, const Tokenizer& tokenizer, TokenId end_of_document, TokenFileWriter& writer,
                  const TokenizeProgress& progress) {
  const std::span<const std::string_view> documents = source.documents();
  int64_t total = 0;
  for (const std::string_view document : documents) total += static_cast<int64_t>(document.size());
  TokenizeWaves waves(tokenizer, end_of_document, writer, progress, total);
  for (const std::string_view document : documents) waves.add(document);
  waves.run();
  writer.commit(end_of_document, fmt::format("{}", fmt::join(source.notes(), "\n")));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

TokenCache open_token_cache(Source& source, const Tokenizer& tokenizer, const std::string& directory,
                            const TokenizeProgress& progress) {
  const std::optional<TokenId> end_of_document =
      tokenizer.end_of_document() ? tokenizer.end_of_document() : tokenizer.start_of_text();
  if (!end_of_document) {
    user_error("the tokenizer has neither an end-of-document nor a start-of-text token; train on one that has");
  }
  uint64_t key = hash_mix(source.content_hash(), tokenizer.fingerprint());
  key = hash_mix(key, hash_mix(static_cast<uint64_t>(*end_of_document), kTokenFileVersion));

  TokenCache cache;
  cache.path = (std::filesystem::path(directory) / fmt::format("{:016x}.tokens", key)).string();
  std::string problem;
  cache.stream = open_token_file(cache.path, key, tokenizer.vocab_size(), problem);
  cache.reused = cache.stream != nullptr;
  if (!problem.empty()) cache.notes.push_back(fmt::format("{}: {}; made again", cache.path, problem));
  if (!cache.reused) {
    source.documents();  // what is wrong with the data is said before anything is written
    try {
      make_directories(directory);
      TokenFileWriter writer(cache.path, key, tokenizer.vocab_size());
      write_tokens(source, tokenizer, *end_of_document, writer, progress);
    } catch (const UserError& error) {
      user_error("{} (the token cache; data.cache_dir chooses another folder)", error.what());
    }
    cache.stream = open_token_file(cache.path, key, tokenizer.vocab_size(), problem);
    if (!cache.stream) {
      user_error("{}: {} right after it was written; check the disk or set data.cache_dir to another", cache.path,
                 problem.empty() ? "gone" : problem);
    }
  }
  for (std::string& line : lines_of(cache.stream->description())) cache.notes.push_back(std::move(line));
  return cache;
}

std::string default_cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/brisk";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/brisk";
  return fmt::format("/tmp/brisk-cache-{}", ::getuid());
}

}  // namespace brisk
