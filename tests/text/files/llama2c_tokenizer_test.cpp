#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "support/load_and_encode.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace brisk {
namespace {

using test::ScratchFolder;
using testing::encode;

struct Piece {
  std::string bytes;
  float score;
};

// The 259 pieces that every vocabulary of llama2.c begins with, then a few of text.
std::vector<Piece> small_vocabulary() {
  std::vector<Piece> pieces = {{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
  for (int byte = 0; byte < 256; ++byte) pieces.push_back({fmt::format("<0x{:02X}>", byte), 0});
  // ids 259 ...: merges with scores, then the single characters with the lowest scores.
  for (const Piece& piece : std::vector<Piece>{{" t", -0.0f}, {"he", -1}, {" the", -2}, {"hen", -3}, {"aa", -4}}) {
    pieces.push_back(piece);
  }
  for (const char* character : {" ", "t", "h", "e", "n", "a", "é", "中"}) pieces.push_back({character, -100});
  return pieces;
}

std::string binary_of(const std::vector<Piece>& pieces) {
  std::string binary;
  const auto append = [&](auto value) { binary.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  append(int32_t{7});
  for (const Piece& piece : pieces) {
    append(piece.score);
    append(static_cast<int32_t>(piece.bytes.size()));
    binary += piece.bytes;
  }
  return binary;
}

constexpr TokenId kT = 259, kHe = 260, kThe = 261, kAa = 263, kSpace = 264, kLetterN = 268, kLetterA = 269,
                  kEAcute = 270;

std::unique_ptr<Tokenizer> load(const ScratchFolder& directory, const std::vector<Piece>& pieces) {
  return load_tokenizer(directory.write("tok.bin", binary_of(pieces)));
}

TEST(Llama2cTokenizer, MergesByScoreWithASpaceBeforeTheText) {
  const ScratchFolder directory;
  const auto tokenizer = load(directory, small_vocabulary());
  EXPECT_EQ(encode(*tokenizer, "the"), (std::vector<TokenId>{kThe}));
  EXPECT_EQ(encode(*tokenizer, "then"), (std::vector<TokenId>{kThe, kLetterN}));  // " the" is better than "hen"
  EXPECT_EQ(encode(*tokenizer, "t the"), (std::vector<TokenId>{kT, kThe}));
  EXPECT_EQ(encode(*tokenizer, " he"), (std::vector<TokenId>{kSpace, kSpace, kHe}));
  EXPECT_EQ(encode(*tokenizer, "aaa"), (std::vector<TokenId>{kSpace, kAa, kLetterA}));  // the leftmost of equals
  EXPECT_EQ(encode(*tokenizer, ""), std::vector<TokenId>{});
}

TEST(Llama2cTokenizer, FallsBackToBytes) {
  const ScratchFolder directory;
  const auto tokenizer = load(directory, small_vocabulary());
  EXPECT_EQ(encode(*tokenizer, "é"), (std::vector<TokenId>{kSpace, kEAcute}));
  EXPECT_EQ(encode(*tokenizer, "ü"), (std::vector<TokenId>{kSpace, 3 + 0xC3, 3 + 0xBC}));
  EXPECT_EQ(encode(*tokenizer, "\n"), (std::vector<TokenId>{kSpace, 3 + '\n'}));
}

TEST(Llama2cTokenizer, TakesTheAddedSpaceOffAtTheBeginning) {
  const ScratchFolder directory;
  const auto tokenizer = load(directory, small_vocabulary());
  EXPECT_EQ(tokenizer->start_of_text(), 1);
  EXPECT_EQ(tokenizer->end_of_document(), 2);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{kThe, kThe}), "the the");
  EXPECT_EQ(tokenizer->piece(kThe), " the");
  EXPECT_EQ(tokenizer->piece(3 + 'x'), "x");
  EXPECT_EQ(tokenizer->piece(1), "<s>");
  EXPECT_THROW(tokenizer->piece(100000), UserError);
}

TEST(Llama2cTokenizer, GivesBackAnyBytes) {
  const ScratchFolder directory;
  const auto tokenizer = load(directory, small_vocabulary());
  for (uint32_t seed = 0; seed < 20; ++seed) {
    for (const std::string& text : {testing::random_bytes(2000, seed), testing::tricky_text(500, seed),
                                    std::string(seed, ' '), " the hen then" + std::string(seed, 'a')}) {
      ASSERT_EQ(tokenizer->decode(encode(*tokenizer, text)), text) << "seed " << seed;
    }
  }
}

TEST(Llama2cTokenizer, SavedAndLoadedIsTheSame) {
  const ScratchFolder directory;
  const auto tokenizer = load(directory, small_vocabulary());
  tokenizer->save(directory / "own.json");
  const auto own = load_tokenizer(directory / "own.json");
  EXPECT_EQ(own->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(own->vocab_size(), tokenizer->vocab_size());
  EXPECT_EQ(encode(*own, "then the hen é"), encode(*tokenizer, "then the hen é"));
  std::vector<Piece> other = small_vocabulary();
  other[kHe].score = 1;  // before " t"
  EXPECT_NE(load(directory, other)->fingerprint(), tokenizer->fingerprint());
}

TEST(Llama2cTokenizer, RefusesDamagedFiles) {
  const ScratchFolder directory;
  const std::string good = binary_of(small_vocabulary());
  const auto error_of = [&](const std::string& binary) {
    return testing::load_error(directory.write("damaged.bin", binary));
  };
  ASSERT_EQ(error_of(good), "");
  for (size_t size = 0; size < good.size(); size += 31) {
    const std::string message = error_of(good.substr(0, size));
    // A cut between two pieces past the bytes leaves a smaller vocabulary, which nothing in the format betrays.
    if (message.empty()) continue;
    ASSERT_TRUE(message.starts_with(directory / "damaged.bin")) << message;
  }
  EXPECT_NE(error_of(good.substr(0, good.size() - 1)).find("cut short"), std::string::npos);
  EXPECT_NE(error_of(good.substr(0, 1000)).find("cut short"), std::string::npos);

  const auto damaged_with = [&](size_t id, const Piece& piece) {
    std::vector<Piece> pieces = small_vocabulary();
    pieces[id] = piece;
    return error_of(binary_of(pieces));
  };
  EXPECT_NE(damaged_with(3, {"<0x01>", 0}).find("expected \"<0x00>\""), std::string::npos);
  EXPECT_NE(damaged_with(260, {" t", 0}).find("the same as that of id 259"), std::string::npos);
  EXPECT_NE(damaged_with(260, {"", 0}).find("empty"), std::string::npos);
  EXPECT_NE(damaged_with(260, {"x", std::numeric_limits<float>::quiet_NaN()}).find("score of id 260"),
            std::string::npos);
  EXPECT_NE(damaged_with(260, {"longer than seven", 0}).find("has the length 17"), std::string::npos);

  std::mt19937 random(2);
  for (int round = 0; round < 150; ++round) {
    std::string binary = good;
    for (int i = 0; i < 2; ++i) binary[random() % binary.size()] = static_cast<char>(random() & 0xFF);
    error_of(binary);  // may still be a valid file; must not crash
  }
}

}  // namespace
}  // namespace brisk
