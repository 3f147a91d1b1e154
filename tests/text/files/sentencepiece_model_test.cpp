#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <random>

#include "base/error.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace brisk {
namespace {

// A protocol buffer, written by hand.
class Message {
 public:
  Message& varint(int number, uint64_t value) {
    append(static_cast<uint64_t>(number) << 3);
    append(value);
    return *this;
  }
  Message& bytes(int number, std::string_view value) {
    append(static_cast<uint64_t>(number) << 3 | 2);
    append(value.size());
    text_ += value;
    return *this;
  }
  Message& number(int number, float value) {
    append(static_cast<uint64_t>(number) << 3 | 5);
    text_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void append(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

struct Settings {
  uint64_t model_type = 2;
  bool byte_fallback = true, prefix_space = true, removes_spaces = false;
  std::string character_map = {};
  std::string user_defined = {};
};

std::string model(const Settings& settings = {}) {
  Message message;
  const auto add = [&](std::string_view text, float score, uint64_t type) {
    message.bytes(1, Message().bytes(1, text).number(2, score).varint(3, type).text());
  };
  add("<unk>", 0, 2);
  add("<s>", 0, 3);
  add("</s>", 0, 3);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0, 6);
  float score = 0;
  for (const char* merge : {"▁t", "he", "▁the", "hen"}) add(merge, score--, 1);  // 259 to 262
  for (const char* letter : {"▁", "t", "h", "e", "n"}) add(letter, score--, 1);  // 263 to 267
  if (!settings.user_defined.empty()) add(settings.user_defined, 0, 4);          // 268
  message.bytes(
      2,
      Message().varint(3, settings.model_type).varint(35, settings.byte_fallback).varint(41, 1).varint(42, 2).text());
  message.bytes(3, Message()
                       .bytes(1, "identity")
                       .bytes(2, settings.character_map)
                       .varint(3, settings.prefix_space)
                       .varint(4, settings.removes_spaces)
                       .text());
  return message.text();
}

std::vector<TokenId> encode(const Settings& settings, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer_from_memory(model(settings), "t.model")->encode(text, ids);
  return ids;
}

using Ids = std::vector<TokenId>;

TEST(SentencePieceModel, MergesByScore) {
  EXPECT_EQ(encode({}, "the then"), (Ids{261, 261, 267}));
  EXPECT_EQ(encode({}, " hen"), (Ids{263, 263, 262}));
  EXPECT_EQ(encode({}, "é"), (Ids{263, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(encode({.byte_fallback = false}, "éüt"), (Ids{263, 0, 264}));  // one <unk> for both
  EXPECT_EQ(encode({.prefix_space = false}, "the the"), (Ids{264, 260, 261}));
  EXPECT_EQ(encode({.removes_spaces = true}, "  the   the "), (Ids{261, 261}));
  EXPECT_EQ(encode({.user_defined = "<x>"}, "the<x>the"), (Ids{261, 268, 261}));
}

TEST(SentencePieceModel, KnowsItsEndsAndGivesBackTheText) {
  const auto tokenizer = tokenizer_from_memory(model(), "t.model");
  EXPECT_EQ(tokenizer->start_of_text(), 1);
  EXPECT_EQ(tokenizer->end_of_document(), 2);
  for (const char* text : {"the then", " the", "é\n\xFF x", ""}) {
    Ids ids;
    tokenizer->encode(text, ids);
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
  Ids ids;
  tokenizer->encode_with_specials("the", ids);
  EXPECT_EQ(ids, (Ids{1, 261}));
}

std::string error_of(const std::string& content) {
  return test::message_of<UserError>([&] { tokenizer_from_memory(content, "t.model"); });
}

TEST(SentencePieceModel, RefusesWhatIsNeitherUnigramNorABpeOfTheLlamaFamily) {
  EXPECT_NE(error_of(model({.model_type = 3})).find("is of the type words; brisk reads Unigram and BPE"),
            std::string::npos);
  EXPECT_NE(error_of(model({.character_map = "x"})).find("a BPE that normalizes text by the rule \"identity\""),
            std::string::npos);
  EXPECT_NE(error_of(model({.user_defined = "the"}) + Message().bytes(1, Message().bytes(1, "t").text()).text())
                .find("is the same as that of id 264"),
            std::string::npos);
}

TEST(SentencePieceModel, ABookForAPieceIsReadAtOnce) {
  const std::clock_t begin = std::clock();
  const std::string book = std::string(1'000'000, 'x') + "the";
  EXPECT_EQ(error_of(model({.user_defined = book})), "");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
}

TEST(SentencePieceModel, NeverCrashesOnDamagedFiles) {
  const std::string good = model();
  for (size_t size = 0; size < good.size(); size += 37) EXPECT_NE(error_of(good.substr(0, size)), "") << size;
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = good;
    for (int i = 0; i < 2; ++i) damaged[random() % damaged.size()] = static_cast<char>(random() & 0xFF);
    error_of(damaged);
  }
}

}  // namespace
}  // namespace brisk
