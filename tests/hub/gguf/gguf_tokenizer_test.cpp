#include "hub/gguf/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;
using test::ScratchFolder;

// llama2.c's binary: the length of the longest piece, then score, length and bytes of each.
std::unique_ptr<Tokenizer> sentencepiece() {
  std::string file;
  const auto number = [&](auto value) { file.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  const auto piece = [&](const std::string& text, float score) {
    number(score);
    number(static_cast<int32_t>(text.size()));
    file += text;
  };
  number(int32_t{16});
  piece("<unk>", 0);
  piece("\n<s>\n", 0);
  piece("\n</s>\n", 0);
  for (int byte = 0; byte < 256; ++byte) piece(fmt::format("<0x{:02X}>", byte), 0);
  // "ab" before "bc": "abc" is "ab", "c", and not "a", "bc".
  const std::vector<std::string> pieces = {"ab", "bc", " ab", "aba", " ", "a", "b", "c"};
  for (size_t i = 0; i < pieces.size(); ++i) piece(pieces[i], -static_cast<float>(i));
  return tokenizer_from_memory(file, "tok.bin");
}

// What reading the file gives, for a model of `vocab_size` entries.
std::unique_ptr<Tokenizer> through_gguf(const Tokenizer& tokenizer, int64_t vocab_size) {
  const ScratchFolder scratch;
  GgufWriter writer(scratch / "model.gguf");
  set_tokenizer(writer, tokenizer, vocab_size);
  writer.finish();
  const GgufFile file(scratch / "model.gguf");
  EXPECT_EQ(std::ssize(std::get<std::vector<std::string>>(*file.value("tokenizer.ggml.tokens"))), vocab_size);
  return tokenizer_of(file);
}

void expect_same(const Tokenizer& a, const Tokenizer& b) {
  for (const std::string text :
       {"", "abc", "abcabab bc", "ab  aba\n", "na\xC3\xAFve <|endoftext|> </s> the", "the then"}) {
    std::vector<TokenId> ids, others;
    a.encode(text, ids);
    b.encode(text, others);
    EXPECT_EQ(ids, others) << text;
    EXPECT_EQ(a.decode(ids), b.decode(ids)) << text;
  }
  EXPECT_EQ(a.end_of_document(), b.end_of_document());
  EXPECT_EQ(a.start_of_text(), b.start_of_text());
  EXPECT_EQ(a.vocab_size(), b.vocab_size());
}

TEST(GgufTokenizer, OfSentencePieceEncodesTheSame) {
  const auto tokenizer = sentencepiece();
  std::vector<TokenId> ids;
  tokenizer->encode("abc", ids);
  ASSERT_EQ(ids.size(), 2u) << "the order of merges does not show";
  expect_same(*through_gguf(*tokenizer, tokenizer->vocab_size()), *tokenizer);
  expect_same(*through_gguf(*tokenizer, tokenizer->vocab_size() + 5), *tokenizer);
}

TEST(GgufTokenizer, OfBytesEncodesTheSame) {
  const std::vector<std::string_view> texts = {"the cat then the dog then the end abcabc abc"};
  const auto tokenizer = train_bpe(texts, {.vocab_size = 270}).tokenizer;
  expect_same(*through_gguf(*tokenizer, tokenizer->vocab_size()), *tokenizer);
  const auto padded = through_gguf(*tokenizer, tokenizer->vocab_size() + 7);
  expect_same(*padded, *tokenizer);
  EXPECT_EQ(padded->fingerprint(), tokenizer->fingerprint());
}

TEST(GgufTokenizer, ThatBriskDoesNotReadIsNamed) {
  const ScratchFolder scratch;
  const auto complaint = [&](const std::function<void(GgufWriter&)>& fill) {
    std::filesystem::remove(scratch / "model.gguf");
    GgufWriter writer(scratch / "model.gguf");
    fill(writer);
    writer.finish();
    return message_of<UserError>([&] { tokenizer_of(GgufFile(scratch / "model.gguf")); });
  };
  EXPECT_TRUE(has(complaint([](GgufWriter&) {}), "tokenizer.ggml.model is missing"));
  EXPECT_TRUE(has(complaint([](GgufWriter& writer) { writer.set("tokenizer.ggml.model", "bert"); }), "\"bert\""));
  EXPECT_TRUE(has(complaint([](GgufWriter& writer) {
                    writer.set("tokenizer.ggml.model", "gpt2");
                    writer.set("tokenizer.ggml.pre", "qwen2");
                  }),
                  "tokenizer.ggml.pre is \"qwen2\""));
  EXPECT_TRUE(has(complaint([](GgufWriter& writer) {
                    writer.set("tokenizer.ggml.model", "llama");
                    writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "a"});
                    writer.set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1});
                  }),
                  "token 2 is a duplicate"));
  EXPECT_TRUE(has(complaint([](GgufWriter& writer) {
                    writer.set("tokenizer.ggml.model", "gpt2");
                    writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
                    writer.set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1});
                  }),
                  "no token for the byte 0x00"));
}

TEST(GgufTokenizer, WhoseEndsAreUnusedTokensIsRefused) {
  const ScratchFolder scratch;
  const auto complaint = [&](bool has_unknown, uint32_t unused) {
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
    std::vector<int32_t> kinds(tokens.size(), 6);
    kinds[0] = 2, kinds[1] = kinds[2] = 3;
    kinds[unused] = 5;
    GgufWriter writer(scratch / "model.gguf");
    writer.set("tokenizer.ggml.model", "llama");
    writer.set("tokenizer.ggml.tokens", tokens);
    writer.set("tokenizer.ggml.token_type", kinds);
    writer.set("tokenizer.ggml.scores", std::vector<float>(tokens.size()));
    writer.set("tokenizer.ggml.bos_token_id", uint32_t{1});
    if (has_unknown) writer.set("tokenizer.ggml.unknown_token_id", uint32_t{0});
    writer.finish();
    return message_of<UserError>([&] { tokenizer_of(GgufFile(scratch / "model.gguf")); });
  };
  EXPECT_EQ(complaint(true, 2), "");
  EXPECT_TRUE(has(complaint(true, 0), "unknown_token_id is not one of its 259 tokens"));
  EXPECT_TRUE(has(complaint(false, 0), "token 0 is unused"));
  EXPECT_TRUE(has(complaint(true, 1), "bos_token_id is not one of its 259 tokens"));
}

}  // namespace
}  // namespace brisk
