#include "data/token_store/token_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/parse_json.h"
#include "base/text/plural.h"
#include "data/read/source_files.h"
#include "data/token_store/text_hash.h"
#include "data/token_store/token_file_build.h"
#include "text/pipeline/words.h"

namespace brisk {

namespace {

// Text on each side of a cut that is tokenised both ways to see that the cut changes nothing.
constexpr size_t kCutContext = 200;

// Byte-level BPE never merges across words, so its texts may be cut between them; a vocabulary that writes something
// before each text, or merges across words, may not. The tokenizer is asked by example, on the text at hand.
bool cut_changes_nothing(const Tokenizer& tokenizer, std::string_view text, size_t cut) {
  const auto is_inside_character = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  size_t begin = cut - std::min(cut, kCutContext);
  size_t end = std::min(text.size(), cut + kCutContext);
  while (begin > 0 && is_inside_character(begin)) --begin;
  while (end < text.size() && is_inside_character(end)) ++end;
  std::string before(text.substr(begin, cut - begin)), after(text.substr(cut, end - cut));
  for (std::string* part : {&before, &after}) make_line_ends_plain(*part);  // as they will be tokenised
  std::vector<TokenId> whole, parts;
  tokenizer.encode(before + after, whole);
  tokenizer.encode(before, parts);
  tokenizer.encode(after, parts);
  return whole == parts;
}

// What a core makes of a piece.
struct PieceTokens {
  struct Document {
    size_t end;  // in tokens
    uint64_t hash;
  };
  std::vector<TokenId> tokens;
  std::vector<Document> documents;
  std::string_view part;  // the text, where the piece is a part of a document
  int64_t without_text = 0;
};

// Where a build stands, besides what is in the token file.
struct Place {
  SourcePosition position;
  int64_t documents_in_file = 0, without_text = 0;

  std::string text() const {
    return nlohmann::json({position.file, position.offset, position.line, documents_in_file, without_text}).dump();
  }
  static Place from(const std::string& text) {
    const auto numbers = parse_json_or_discard<nlohmann::json>(text).get<std::vector<int64_t>>();
    return {{numbers.at(0), numbers.at(1), numbers.at(2)}, numbers.at(3), numbers.at(4)};
  }
};

class TokenFileBuilder {
 public:
  TokenFileBuilder(Source& source, const Tokenizer& tokenizer, TokenId end_of_document, TokenFileWriter& writer,
                   const TokenizeProgress& progress, double journal_seconds)
      : source_(source),
        tokenizer_(tokenizer),
        end_of_document_(end_of_document),
        writer_(writer),
        progress_(progress),
        journal_seconds_(journal_seconds) {}

  void build() {
    source_.choose_rule();
    if (!writer_.resumed_at().empty()) place_ = Place::from(writer_.resumed_at());
    const auto cut = [&](std::string_view text, size_t from) {
      const size_t at = cut_between_words(text, from);
      return at < text.size() && cut_changes_nothing(tokenizer_, text, at) ? at : text.size();
    };
    TextPieceReader reader(source_, place_.position, cut);
    build_token_file(
        reader, {writer_, progress_, source_.bytes(), journal_seconds_},
        [&](TextPiece& piece) { return tokenise(piece); },
        [&](const TextPiece& piece, const PieceTokens& tokens) { take(piece, tokens); }, [&] { return place_.text(); });
    finish();
  }

 private:
  PieceTokens tokenise(TextPiece& piece) const {
    PieceTokens made;
    made.tokens.reserve(piece.text.size() / 3);
    const bool whole = piece.opens && piece.closes;
    made.without_text = for_each_document(source_, piece, [&](std::string_view text) {
      tokenizer_.encode(text, made.tokens);
      if (whole) {
        made.documents.push_back({made.tokens.size(), text_hash(text)});
      } else {
        made.part = text;  // a view into the piece
      }
    });
    return made;
  }

  void take(const TextPiece& piece, const PieceTokens& made) {
    in_cache([&] { piece.opens&& piece.closes ? write_documents(made) : write_part(piece, made); });
    place_.without_text += made.without_text;
    place_.position = piece.end;
    if (piece.ends_file) end_file(static_cast<size_t>(piece.begin.file));
  }

  void write_documents(const PieceTokens& made) {
    size_t begin = 0;
    for (const PieceTokens::Document& document : made.documents) {
      writer_.begin_document(end_of_document_);
      writer_.append(std::span(made.tokens).subspan(begin, document.end - begin));
      writer_.end_document(document.hash);
      begin = document.end;
    }
    place_.documents_in_file += std::ssize(made.documents);
  }

  void write_part(const TextPiece& piece, const PieceTokens& made) {
    if (piece.opens) {
      writer_.begin_document(end_of_document_);
      part_hash_ = {};
    }
    writer_.append(made.tokens);
    part_hash_.add(made.part);
    if (!piece.closes) return;
    writer_.end_document(part_hash_.value());
    ++place_.documents_in_file;
  }

  void end_file(size_t file) {
    if (place_.documents_in_file == 0 && source_.is_named(file)) {
      user_error("{}: there is no text in it, only blank lines{}; give a file with text", source_.files()[file],
                 source_.is_json(file) ? format_message(" and empty \"{}\" fields", source_.options().text_field) : "");
    }
    place_.documents_in_file = 0;
    place_.position = {static_cast<int64_t>(file) + 1, 0, 1};
  }

  void finish() {
    source_.unchanged().check();  // first: a file that was cut may be empty by now
    if (writer_.documents() == 0) {
      user_error("{}: no text in any of the files; give files with text", fmt::join(source_.options().paths, ", "));
    }
    std::vector<std::string> notes = source_.notes();
    if (place_.without_text > 0) {
      notes.push_back(format_message("{} with an empty \"{}\" {} skipped", plural(place_.without_text, "object"),
                                     source_.options().text_field, place_.without_text == 1 ? "was" : "were"));
    }
    in_cache([&] { writer_.commit(end_of_document_, fmt::format("{}", fmt::join(notes, "\n"))); });
  }

  Source& source_;
  const Tokenizer& tokenizer_;
  TokenId end_of_document_;
  TokenFileWriter& writer_;
  const TokenizeProgress& progress_;
  double journal_seconds_;
  Place place_;
  TextHash part_hash_;
};

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
                            const TokenizeProgress& progress, double journal_seconds) {
  const std::optional<TokenId> end_of_document =
      tokenizer.end_of_document() ? tokenizer.end_of_document() : tokenizer.start_of_text();
  if (!end_of_document) {
    user_error("the tokenizer has neither an end-of-document nor a start-of-text token; use a tokenizer that has one");
  }
  uint64_t key = hash_mix(source.content_hash(directory), tokenizer.fingerprint());
  key = hash_mix(key, hash_mix(static_cast<uint64_t>(*end_of_document), kTokenFileVersion));

  TokenCache cache =
      open_or_make_tokens(directory, key, tokenizer.vocab_size(), source.unchanged(), [&](TokenFileWriter& writer) {
        TokenFileBuilder(source, tokenizer, *end_of_document, writer, progress, journal_seconds).build();
      });
  for (std::string& line : lines_of(cache.stream->description())) cache.notes.push_back(std::move(line));
  return cache;
}

}  // namespace brisk
