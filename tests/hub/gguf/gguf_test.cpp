#include "hub/gguf/gguf.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "support/scratch_folder.h"
#include "tensor/half_float.h"

namespace brisk {
namespace {

using test::contents_of;
using test::has;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;

GgufWriter::Fill counting() {
  return [](int64_t offset, std::span<std::byte> block) {
    for (size_t i = 0; i < block.size(); ++i)
      block[i] = static_cast<std::byte>((offset + static_cast<int64_t>(i)) % 251);
  };
}

void write_sample(const std::string& path) {
  GgufWriter writer(path);
  writer.set("general.architecture", "llama");
  writer.set("count", uint32_t{4000000000u});
  writer.set("share", 0.25f);
  writer.set("yes", true);
  writer.set("words", std::vector<std::string>{"a", "", "\xE2\x96\x81the"});
  writer.set("scores", std::vector<float>{-1.5f, 0});
  writer.set("kinds", std::vector<int32_t>{1, -7});
  writer.add("matrix", GgufType::f32, {3, 5}, counting());
  writer.add("vector", GgufType::f16, {7}, counting());
  writer.add("rest", GgufType::bf16, {2, 2}, counting());
  const int64_t bytes = writer.finish();
  EXPECT_EQ(bytes, std::ssize(contents_of(path)));
}

TEST(Gguf, ReadsBackWhatItWrote) {
  const ScratchFolder scratch;
  write_sample(scratch / "model.gguf");
  EXPECT_TRUE(is_gguf_file(scratch / "model.gguf"));
  const GgufFile file(scratch / "model.gguf");
  EXPECT_EQ(std::get<std::string>(*file.value("general.architecture")), "llama");
  EXPECT_EQ(std::get<int64_t>(*file.value("count")), 4000000000);
  EXPECT_EQ(std::get<double>(*file.value("share")), 0.25);
  EXPECT_EQ(std::get<bool>(*file.value("yes")), true);
  EXPECT_EQ(std::get<std::vector<std::string>>(*file.value("words")),
            (std::vector<std::string>{"a", "", "\xE2\x96\x81the"}));
  EXPECT_EQ(std::get<std::vector<double>>(*file.value("scores")), (std::vector<double>{-1.5, 0}));
  EXPECT_EQ(std::get<std::vector<int64_t>>(*file.value("kinds")), (std::vector<int64_t>{1, -7}));
  EXPECT_EQ(file.value("no such key"), nullptr);

  ASSERT_EQ(file.tensors().size(), 3u);
  for (const auto& [name, shape, bytes] :
       {std::tuple{"matrix", std::vector<int64_t>{3, 5}, 60}, std::tuple{"vector", std::vector<int64_t>{7}, 14},
        std::tuple{"rest", std::vector<int64_t>{2, 2}, 8}}) {
    const GgufTensor* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->shape, shape) << name;
    ASSERT_EQ(tensor->bytes, bytes) << name;
    for (int i = 0; i < bytes; ++i) ASSERT_EQ(static_cast<const uint8_t*>(tensor->data)[i], i % 251) << name;
  }
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(Gguf, CutAnywhereIsAComplaintThatNamesTheFile) {
  const ScratchFolder scratch;
  write_sample(scratch / "model.gguf");
  const std::string whole = contents_of(scratch / "model.gguf");
  const std::string path = scratch / "cut.gguf";
  // The last tensor's padding alone may be missing.
  for (size_t size = 0; size + 24 < whole.size(); ++size) {
    put_contents(path, whole.substr(0, size));
    const std::string message = message_of<UserError>([&] { GgufFile file(path); });
    ASSERT_TRUE(has(message, path)) << size << ": " << message;
  }
}

TEST(Gguf, WithAnyByteChangedEitherReadsOrComplains) {
  const ScratchFolder scratch;
  write_sample(scratch / "model.gguf");
  const std::string whole = contents_of(scratch / "model.gguf");
  const std::string path = scratch / "changed.gguf";
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned char byte : {0x00, 0x0B, 0x7F, 0xFF}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(byte);
      put_contents(path, changed);
      message_of<UserError>([&] {
        const GgufFile file(path);
        for (const GgufTensor& tensor : file.tensors()) {
          if (!tensor.is_readable()) continue;
          volatile uint8_t last = static_cast<const uint8_t*>(tensor.data)[tensor.bytes - 1];
          (void)last;
        }
      });
    }
  }
}

// The place of a tensor's description in the file: name, dimensions, type, offset.
size_t place_of(const std::string& contents, const std::string& tensor) {
  return contents.find(tensor) + tensor.size();
}

TEST(Gguf, WithTensorsThatOverlapOrLeaveAGapSaysSo) {
  const ScratchFolder scratch;
  write_sample(scratch / "model.gguf");
  const std::string good = contents_of(scratch / "model.gguf");
  const auto complaint_of = [](const std::string& contents) {
    return message_of<UserError>([&] { GgufFile file("x.gguf", std::as_bytes(std::span(contents))); });
  };
  EXPECT_EQ(complaint_of(good), "");
  const size_t matrix = place_of(good, "matrix"), vector = place_of(good, "vector");  // 60 bytes at 0, 14 at 64
  std::string bad = good;
  bad[vector + 16] = 32;  // its offset
  EXPECT_TRUE(has(complaint_of(bad),
                  "'vector' ([7] of F16) begins at byte 32 of the tensors, but 'matrix' ([3, 5] of "
                  "F32) ends at 60: they overlap"))
      << complaint_of(bad);
  bad = good;
  bad[matrix + 20] = 1;  // f16 instead of f32
  EXPECT_TRUE(has(complaint_of(bad), "'matrix' ([3, 5] of F16) ends at 30: they leave a gap")) << complaint_of(bad);
  bad = good;
  bad[matrix + 4] = 9;  // columns
  EXPECT_TRUE(has(complaint_of(bad), "'matrix' ([3, 9] of F32) ends at 108: they overlap")) << complaint_of(bad);
  bad = good;
  bad[matrix + 4] = 2;
  EXPECT_TRUE(has(complaint_of(bad), "they leave a gap")) << complaint_of(bad);
  EXPECT_TRUE(has(complaint_of(good + std::string(64, '\0')), "of which 88 belong to none of them"))
      << complaint_of(good + std::string(64, '\0'));
}

TEST(Gguf, LongArraysAreKeptForTheTokenizerAlone) {
  const ScratchFolder scratch;
  GgufWriter writer(scratch / "model.gguf");
  const std::vector<std::string> many(70000, "a");
  writer.set("some.list", many);
  writer.set("tokenizer.ggml.tokens", many);
  writer.finish();
  const GgufFile file(scratch / "model.gguf");
  EXPECT_TRUE(std::get<std::vector<std::string>>(*file.value("some.list")).empty());
  EXPECT_EQ(std::get<std::vector<std::string>>(*file.value("tokenizer.ggml.tokens")), many);
}

TEST(Gguf, FromMemoryIsReadAsFromAFile) {
  const ScratchFolder scratch;
  write_sample(scratch / "model.gguf");
  const std::string contents = contents_of(scratch / "model.gguf");
  const GgufFile file("memory", std::as_bytes(std::span(contents)));
  ASSERT_NE(file.find("vector"), nullptr);
  EXPECT_EQ(file.find("vector")->bytes, 14);
  EXPECT_TRUE(has(message_of<UserError>([&] { GgufFile("memory", std::as_bytes(std::span(contents)).first(40)); }),
                  "memory: incomplete or damaged GGUF file"));
}

TEST(Gguf, OfAnotherVersionOrKindSaysWhichIsExpected) {
  const ScratchFolder scratch;
  write_sample(scratch / "model.gguf");
  std::string contents = contents_of(scratch / "model.gguf");
  contents[4] = 1;
  put_contents(scratch / "old.gguf", contents);
  EXPECT_TRUE(
      has(message_of<UserError>([&] { GgufFile file(scratch / "old.gguf"); }), "GGUF version 1, expected 2 or 3"));
  put_contents(scratch / "other", "not a model at all, but long enough");
  EXPECT_FALSE(is_gguf_file(scratch / "other"));
  EXPECT_TRUE(has(message_of<UserError>([&] { GgufFile file(scratch / "other"); }), "not a GGUF file"));
}

TEST(HalfFloat, ComesBackFromEveryNumberOfFp16) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (value != value) {
      EXPECT_EQ(float_to_half(value) & 0x7E00, 0x7E00) << bits;
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
}

TEST(HalfFloat, RoundsToTheNearestAndToEven) {
  EXPECT_EQ(float_to_half(1 + 0x1p-11f), 0x3C00);             // half way: to even
  EXPECT_EQ(float_to_half(1 + 3 * 0x1p-11f), 0x3C02);         // half way: to even
  EXPECT_EQ(float_to_half(1 + 0x1p-11f + 0x1p-20f), 0x3C01);  // above half way
  EXPECT_EQ(float_to_half(65519.0f), 0x7BFF);                 // the largest
  EXPECT_EQ(float_to_half(65520.0f), 0x7C00);                 // infinite from here
  EXPECT_EQ(float_to_half(-1e30f), 0xFC00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);  // half of the smallest: to even
  EXPECT_EQ(float_to_half(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float_to_half(0x1p-14f - 0x1p-26f), 0x0400);  // up into the normal numbers
}

}  // namespace
}  // namespace brisk
