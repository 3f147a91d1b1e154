#include "text/pipeline/normalizer.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/unicode.h"
#include "text/pipeline/character_map.h"
#include "text/pipeline/json_fields.h"
#include "text/pipeline/replace.h"
#include "text/regex/regex.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/normalization.h"

namespace brisk {

namespace {

constexpr const char* kKnownNormalizers =
    "NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Lowercase, Strip, StripAccents, Prepend, Replace, BertNormalizer, ByteLevel, "
    "Sequence";

// The text with each character handled by `handle(code_point, bytes, out)`.
template <typename Handle>
std::string map_characters(std::string_view text, const Handle& handle) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    handle(character.value, text.substr(at, character.length), out);
    at += character.length;
  }
  return out;
}

std::string lowercase(std::string_view text) {
  return map_characters(text, [](uint32_t code_point, std::string_view bytes, std::string& out) {
    const uint32_t lower = code_point == kInvalidCodePoint ? code_point : lowercase_of(code_point);
    if (lower == code_point) {
      out += bytes;
      return;
    }
    append_utf8(lower, out);
    if (code_point == 0x130) append_utf8(0x307, out);  // İ: the one whose lower case is two characters
  });
}

std::string remove_if(std::string_view text, bool (*is_removed)(uint32_t)) {
  return map_characters(text, [&](uint32_t code_point, std::string_view bytes, std::string& out) {
    if (!is_removed(code_point)) out += bytes;
  });
}

std::string strip(std::string_view text, bool left, bool right) {
  const auto is_space_at = [&](size_t at) { return is_white_space(decode_utf8(text, at).value); };
  while (left && !text.empty() && is_space_at(0)) text.remove_prefix(next_character(text, 0));
  while (right && !text.empty()) {
    const size_t last = previous_character(text, text.size());
    if (!is_space_at(last)) break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

std::string clean(std::string_view text) {
  return map_characters(text, [](uint32_t c, std::string_view bytes, std::string& out) {
    if (is_bert_control(c)) return;
    if (is_white_space(c)) {
      out += ' ';
    } else {
      out += bytes;
    }
  });
}

// Control characters are removed, and other characters without a width are spaces, as for translation (Nmt).
std::string clean_for_translation(std::string_view text) {
  return map_characters(text, [](uint32_t c, std::string_view bytes, std::string& out) {
    const bool is_control =
        (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    const bool is_space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                          c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    if (is_control) return;
    if (is_space) {
      out += ' ';
    } else {
      out += bytes;
    }
  });
}

std::string space_chinese(std::string_view text) {
  return map_characters(text, [](uint32_t c, std::string_view bytes, std::string& out) {
    if (is_bert_chinese(c)) {
      out.append(" ").append(bytes).append(" ");
    } else {
      out += bytes;
    }
  });
}

}  // namespace

struct Normalizer::Step {
  std::function<std::string(std::string_view)> apply;
};

Normalizer::Normalizer() = default;
Normalizer::~Normalizer() = default;
Normalizer::Normalizer(Normalizer&&) noexcept = default;
Normalizer& Normalizer::operator=(Normalizer&&) noexcept = default;

Normalizer::Normalizer(const nlohmann::json& component, const std::string& place) {
  if (!component.is_null()) add(component, place, 0);
}

void Normalizer::add(const nlohmann::json& component, const std::string& place, int depth) {
  const std::string type = component_type(component, place);
  const auto add_step = [&](auto apply) { steps_.push_back({std::move(apply)}); };
  const auto add_form = [&](NormalForm form) {
    add_step([form](std::string_view text) { return normalize_unicode(text, form); });
  };
  if (type == "Sequence") {
    if (depth >= kDeepestSequence)
      user_error("{}: sequences are nested more than {} levels deep", place, kDeepestSequence);
    for (const nlohmann::json& part : json_array(component, "normalizers", place)) add(part, place, depth + 1);
  } else if (type == "NFC") {
    add_form(NormalForm::kNfc);
  } else if (type == "NFD") {
    add_form(NormalForm::kNfd);
  } else if (type == "NFKC") {
    add_form(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    add_form(NormalForm::kNfkd);
  } else if (type == "Nmt") {
    add_step(clean_for_translation);
  } else if (type == "Precompiled") {
    const auto bytes = decode_base64(json_text(component, "precompiled_charsmap", place));
    if (!bytes) user_error("{}: \"precompiled_charsmap\" is not base64: copy the file again", place);
    add_step([map = std::make_shared<const CharacterMap>(*bytes, place)](std::string_view text) {
      return map->normalize_graphemes(text);
    });
  } else if (type == "Lowercase") {
    add_step(lowercase);
  } else if (type == "StripAccents") {
    add_step([](std::string_view text) { return remove_if(text, is_library_mark); });
  } else if (type == "Strip") {
    add_step([left = json_flag(component, "strip_left", place, true),
              right = json_flag(component, "strip_right", place, true)](std::string_view text) {
      return strip(text, left, right);
    });
  } else if (type == "Prepend") {
    add_step([prefix = json_text(component, "prepend", place)](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    });
  } else if (type == "Replace") {
    add_step([replace = std::make_shared<const Replace>(json_pattern(component, place),
                                                        json_text(component, "content", place), place)](
                 std::string_view text) { return replace->apply(text); });
  } else if (type == "ByteLevel") {
    add_step([](std::string_view text) { return byte_alphabet_encode(text); });
  } else if (type == "BertNormalizer") {
    const bool lower = json_flag(component, "lowercase", place, true);
    if (json_flag(component, "clean_text", place, true)) add_step(clean);
    if (json_flag(component, "handle_chinese_chars", place, true)) add_step(space_chinese);
    if (json_flag(component, "strip_accents", place, lower)) {
      add_form(NormalForm::kNfd);
      add_step([](std::string_view text) { return remove_if(text, is_bert_mark); });
    }
    if (lower) add_step(lowercase);
  } else {
    refuse_component(place, type, kKnownNormalizers);
  }
  if (steps_.size() > kMostSteps) user_error("{}: more than {} steps", place, kMostSteps);
}

std::string Normalizer::apply(std::string_view text) const {
  std::string result(text);
  for (const Step& step : steps_) {
    result = step.apply(result);
    check_growth(text.size(), result.size(), "normalizer makes");
  }
  return result;
}

}  // namespace brisk
