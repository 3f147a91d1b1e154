// The file formats behind load_tokenizer() and Tokenizer::save(); used inside text/ only.
//
// Our own formats are JSON. Every byte string in them is written in GPT-2's byte alphabet (byte_alphabet.h):
//
//   {"format": "brisk-bpe-1", "words": "gpt2", "end_of_document": "<|endoftext|>",
//    "tokens": ["Ā", "ā", ..., "Ġthe", "<|endoftext|>"],        in the order of their ids
//    "merges": ["Ġ t", "h e", "Ġt he"]}                          in the order they apply
//
//   {"format": "brisk-sentencepiece-1", "tokens": ["<unk>", ...], "scores": [0, ...]}
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace brisk {

inline constexpr std::string_view kByteBpeFormat = "brisk-bpe-1";
inline constexpr std::string_view kSentencePieceFormat = "brisk-sentencepiece-1";

// `path` is named in errors. `content` is an object whose "format" is the one of the function's name.
std::unique_ptr<Tokenizer> byte_bpe_from_json(const std::string& path, const nlohmann::json& content);
std::unique_ptr<Tokenizer> sentencepiece_from_json(const std::string& path, const nlohmann::json& content);

std::unique_ptr<Tokenizer> byte_bpe_from_gpt2(const std::string& vocabulary_path, const nlohmann::json& vocabulary,
                                              const std::string& merges_path, std::string_view merges);
std::unique_ptr<Tokenizer> sentencepiece_from_llama2c(const std::string& path, std::string_view content);

// content[key], an array whose elements are all strings (or all numbers).
const nlohmann::json& required_array_of_strings(const std::string& path, const nlohmann::json& content,
                                                const char* key);
const nlohmann::json& required_array_of_numbers(const std::string& path, const nlohmann::json& content,
                                                const char* key);

// "a", "b", ... in lines of about a hundred characters, as the elements of a JSON array.
std::string json_elements(std::span<const std::string> texts);

}  // namespace brisk
