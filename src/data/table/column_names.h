// The names that columns of tables usually have.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brisk {

// The usual names, the likeliest first. Of two texts that belong together, both are given.
inline const std::vector<std::string> kTextNames = {
    "text",        "sentence",    "review",    "content", "lyrics",   "lyric",   "comment",
    "commenttext", "reviewtext",  "tweet",     "message", "document", "body",    "article",
    "post",        "description", "utterance", "phrase",  "input",    "string",  "quote",
    "passage",     "abstract",    "headline",  "title",   "question", "summary", "verbatim"};
inline const std::vector<std::pair<std::string, std::string>> kPairNames = {
    {"sentence1", "sentence2"}, {"premise", "hypothesis"},  {"question1", "question2"}, {"texta", "textb"},
    {"text1", "text2"},         {"sentencea", "sentenceb"}, {"question", "sentence"}};
// Of a text and what it becomes.
inline const std::vector<std::pair<std::string, std::string>> kTranslationNames = {
    {"source", "target"},      {"src", "tgt"},          {"src", "trg"},
    {"source", "translation"}, {"text", "translation"}, {"sourcetext", "targettext"},
    {"input", "output"},       {"input", "target"},     {"inputtext", "targettext"},
    {"article", "highlights"}, {"article", "summary"},  {"document", "summary"},
    {"text", "summary"},       {"question", "answer"},  {"prompt", "completion"}};
inline const std::vector<std::string> kLabelNames = {
    "label",    "labels",   "sentiment",        "genre",     "class",      "category", "target", "topic",
    "emotion",  "polarity", "intent",           "goldlabel", "tag",        "type",     "stars",  "rating",
    "score",    "grade",    "airlinesentiment", "labeltext", "classindex", "y",        "output", "lang",
    "language", "author"};

// Of an image and what is said of it.
inline const std::vector<std::string> kImageNames = {"image",    "img",      "imagefile", "imagepath",    "imagename",
                                                     "filename", "filepath", "file",      "path",         "picture",
                                                     "photo",    "figure",   "page",      "imagefilename"};
inline const std::vector<std::string> kImageTextNames = {
    "text",     "caption",     "markdown", "mmd",         "latex",       "target", "transcript", "transcription",
    "sentence", "translation", "answer",   "description", "groundtruth", "title",  "label"};

// "Review_Text " is "reviewtext".
inline std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ' || c == '.') continue;
    plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return plain;
}

}  // namespace brisk
