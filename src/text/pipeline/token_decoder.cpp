#include "text/pipeline/token_decoder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "text/pipeline/json_fields.h"
#include "text/pipeline/replace.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

namespace {

constexpr const char* kKnownDecoders =
    "ByteLevel, Metaspace, ByteFallback, Fuse, Strip, Replace, BPEDecoder, WordPiece, Sequence";

using Tokens = std::vector<std::string>;

std::string joined(const Tokens& tokens, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += between;
    text += tokens[i];
  }
  return text;
}

// The byte that "<0x41>" stands for.
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = 16 * value + digit;
  }
  return static_cast<char>(value);
}

std::string strip(std::string_view token, std::string_view content, int64_t at_start, int64_t at_end) {
  for (int64_t i = 0; i < at_start && token.starts_with(content); ++i) token.remove_prefix(content.size());
  for (int64_t i = 0; i < at_end && token.ends_with(content); ++i) token.remove_suffix(content.size());
  return std::string(token);
}

// In this order, each wherever it occurs.
constexpr std::pair<const char*, const char*> kCleanings[] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

std::string cleaned(std::string token) {
  for (const auto& [from, to] : kCleanings) {
    if (token.find(from) != std::string::npos) token = Replace({from, false}, to, "").apply(token);
  }
  return token;
}

}  // namespace

struct TokenDecoder::Step {
  enum class Kind { kByteLevel, kMetaspace, kByteFallback, kFuse, kStrip, kReplace, kSuffix, kWordPiece };
  Kind kind;
  std::string text = {};        // kMetaspace: what stands for a space; kStrip; kSuffix; kWordPiece: the prefix
  bool takes_first = false;     // kMetaspace, kWordPiece: the first token has no space before it
  bool cleans = false;          // kWordPiece: takes spaces out that English does not have
  int64_t start = 0, stop = 0;  // kStrip
  std::shared_ptr<const Replace> replace = nullptr;

  void apply(Tokens& tokens) const;
};

TokenDecoder::TokenDecoder() = default;
TokenDecoder::~TokenDecoder() = default;
TokenDecoder::TokenDecoder(TokenDecoder&&) noexcept = default;
TokenDecoder& TokenDecoder::operator=(TokenDecoder&&) noexcept = default;

TokenDecoder::TokenDecoder(const nlohmann::json& component, const std::string& place) {
  if (!component.is_null()) add(component, place, 0);
}

void TokenDecoder::add(const nlohmann::json& component, const std::string& place, int depth) {
  using Kind = Step::Kind;
  const std::string type = component_type(component, place);
  if (type == "Sequence") {
    if (depth >= kDeepestSequence)
      user_error("{}: sequences are nested more than {} levels deep", place, kDeepestSequence);
    for (const nlohmann::json& part : json_array(component, "decoders", place)) add(part, place, depth + 1);
  } else if (type == "ByteLevel") {
    steps_.push_back({.kind = Kind::kByteLevel});
  } else if (type == "Metaspace") {
    const std::string scheme =
        json_text_or_null(component, "prepend_scheme", place)
            .value_or(json_flag(component, "add_prefix_space", place, true) ? "always" : "never");
    steps_.push_back({.kind = Kind::kMetaspace,
                      .text = json_text(component, "replacement", place),
                      .takes_first = scheme != "never"});
  } else if (type == "ByteFallback") {
    steps_.push_back({.kind = Kind::kByteFallback});
  } else if (type == "Fuse") {
    steps_.push_back({.kind = Kind::kFuse});
  } else if (type == "Strip") {
    constexpr int64_t kMost = int64_t{1} << 30;
    steps_.push_back({.kind = Kind::kStrip,
                      .text = json_text(component, "content", place),
                      .start = json_integer(component, "start", place, 0, kMost),
                      .stop = json_integer(component, "stop", place, 0, kMost)});
    if (steps_.back().text.empty()) user_error("{}: \"content\" is empty, expected one character", place);
  } else if (type == "Replace") {
    steps_.push_back({.kind = Kind::kReplace,
                      .replace = std::make_shared<const Replace>(json_pattern(component, place),
                                                                 json_text(component, "content", place), place)});
  } else if (type == "BPEDecoder") {
    steps_.push_back({.kind = Kind::kSuffix, .text = json_text(component, "suffix", place)});
  } else if (type == "WordPiece") {
    steps_.push_back({.kind = Kind::kWordPiece,
                      .text = json_text_or_null(component, "prefix", place).value_or("##"),
                      .takes_first = true,
                      .cleans = json_flag(component, "cleanup", place, true)});
  } else {
    refuse_component(place, type, kKnownDecoders);
  }
  if (steps_.size() > kMostSteps) user_error("{}: more than {} steps", place, kMostSteps);
}

void TokenDecoder::Step::apply(Tokens& tokens) const {
  switch (kind) {
    case Kind::kByteLevel:
      for (std::string& token : tokens) {
        if (auto bytes = byte_alphabet_decode(token)) token = *std::move(bytes);
      }
      break;
    case Kind::kByteFallback:
      for (std::string& token : tokens) {
        if (const auto byte = fallback_byte(token)) token = std::string(1, *byte);
      }
      return;
    case Kind::kMetaspace:
      for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = Replace({text, false}, i == 0 && takes_first ? "" : " ", "").apply(tokens[i]);
      }
      return;
    case Kind::kSuffix:
      for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = Replace({text, false}, i + 1 == tokens.size() ? "" : " ", "").apply(tokens[i]);
      }
      return;
    case Kind::kWordPiece:
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0 || !takes_first) {
          tokens[i] = !text.empty() && tokens[i].starts_with(text) ? tokens[i].substr(text.size()) : " " + tokens[i];
        }
        if (cleans) tokens[i] = cleaned(std::move(tokens[i]));
      }
      return;
    case Kind::kStrip:
      for (std::string& token : tokens) token = strip(token, text, start, stop);
      return;
    case Kind::kReplace:
      for (std::string& token : tokens) token = replace->apply(token);
      return;
    case Kind::kFuse: break;
  }
  tokens = {joined(tokens, "")};
}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
  if (steps_.empty()) return joined(tokens, " ");
  const auto size_of = [](const Tokens& list) {
    size_t size = 0;
    for (const std::string& token : list) size += token.size();
    return size;
  };
  const size_t size_before = size_of(tokens);
  for (const Step& step : steps_) {
    step.apply(tokens);
    check_growth(size_before, size_of(tokens), "decoder makes");
  }
  return joined(tokens, "");
}

std::string TokenDecoder::piece(const std::string& token) const {
  Tokens tokens = {token};
  for (Step step : steps_) {
    if (step.kind == Step::Kind::kStrip) continue;  // the ends of a text, not of a token
    step.takes_first = false;
    if (step.kind == Step::Kind::kSuffix) tokens.push_back("");  // not the last
    step.apply(tokens);
    check_growth(token.size(), tokens[0].size(), "decoder makes");
  }
  return joined(tokens, "");
}

bool TokenDecoder::joins_pieces() const {
  return !steps_.empty() && std::ranges::all_of(steps_, [](const Step& step) {
    return step.kind == Step::Kind::kByteLevel || step.kind == Step::Kind::kByteFallback ||
           step.kind == Step::Kind::kFuse;
  });
}

}  // namespace brisk
