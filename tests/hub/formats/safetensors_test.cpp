#include "hub/formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "support/broken_system.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::contents_of;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;

// A file with this header and so many bytes of tensors.
std::string file_with(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string contents(8, '\0');
  std::memcpy(contents.data(), &length, 8);
  return contents + header + std::string(data_bytes, '\1');
}

class Safetensors : public ::testing::Test {
 protected:
  std::string complaint(const std::string& contents) {
    put_contents(path_, contents);
    const std::string message = message_of<UserError>([&] { SafetensorsFile file(path_); });
    EXPECT_TRUE(message.empty() || message.find(path_) != std::string::npos) << message;
    return message;
  }
  void expect_complaint(const std::string& header, size_t data_bytes, const std::string& part) {
    const std::string message = complaint(file_with(header, data_bytes));
    EXPECT_NE(message.find(part), std::string::npos) << "expected '" << part << "' in '" << message << "'";
  }

  ScratchFolder folder_;
  std::string path_ = folder_ / "model.safetensors";
};

TEST_F(Safetensors, WhatIsWrittenIsReadBack) {
  std::vector<float> weight(6);
  std::iota(weight.begin(), weight.end(), 0.5f);
  const std::vector<int64_t> counts = {-1, int64_t{1} << 40};
  const std::vector<int32_t> ids = {7};
  const std::vector<uint16_t> halves = {0x3F80, 0xC000};
  SafetensorsWriter writer(path_);
  writer.add_metadata("format", "pt");
  writer.add_metadata("note", "quotes \" and ünicode");
  writer.add("weight", SafetensorsType::f32, {2, 3}, weight.data());
  writer.add("counts", SafetensorsType::i64, {2}, counts.data());
  writer.add("ids", SafetensorsType::i32, {1, 1, 1}, ids.data());
  writer.add("halves", SafetensorsType::bf16, {2}, halves.data());
  writer.add("scalar", SafetensorsType::f32, {}, weight.data());
  writer.add("empty", SafetensorsType::f32, {0, 5}, weight.data());
  const int64_t bytes = writer.finish();
  EXPECT_EQ(bytes, file_size(path_));

  const SafetensorsFile file(path_);
  ASSERT_EQ(file.entries().size(), 6u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("note"), "quotes \" and ünicode");
  const SafetensorsEntry* entry = file.find("weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(entry->count(), 6);
  EXPECT_EQ(std::memcmp(entry->data, weight.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.find("counts")->data, counts.data(), 16), 0);
  EXPECT_EQ(file.find("counts")->type, SafetensorsType::i64);
  EXPECT_EQ(std::memcmp(file.find("ids")->data, ids.data(), 4), 0);
  EXPECT_EQ(std::memcmp(file.find("halves")->data, halves.data(), 4), 0);
  EXPECT_EQ(file.find("scalar")->count(), 1);
  EXPECT_EQ(file.find("empty")->bytes, 0);
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST_F(Safetensors, AFileWithoutTensorsIsWhole) {
  SafetensorsWriter(path_).finish();
  EXPECT_TRUE(SafetensorsFile(path_).entries().empty());
}

TEST_F(Safetensors, TensorsLargerThanABlockAreAskedForInPieces) {
  const int64_t count = (int64_t{9} << 20) / 4 + 3;
  int64_t asked = 0, expected_offset = 0;
  SafetensorsWriter writer(path_);
  writer.add("large", SafetensorsType::i32, {count}, [&](int64_t offset, std::span<std::byte> block) {
    EXPECT_EQ(offset, expected_offset);
    expected_offset += std::ssize(block);
    ++asked;
    for (size_t i = 0; i < block.size(); i += 4) {
      const int32_t value = static_cast<int32_t>((offset + static_cast<int64_t>(i)) / 4);
      std::memcpy(block.data() + i, &value, 4);
    }
  });
  writer.finish();
  EXPECT_EQ(asked, 3);
  const SafetensorsFile file(path_);
  const auto* values = static_cast<const int32_t*>(file.find("large")->data);
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(values[i], i);
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  const std::vector<float> values(5, 1.0f);
  SafetensorsWriter writer(path_);
  writer.add_metadata("step", "3");
  writer.add("a", SafetensorsType::f32, {5}, values.data());
  writer.add("b", SafetensorsType::f32, {1, 2}, values.data());
  writer.finish();
  const std::string whole = contents_of(path_);
  EXPECT_EQ(complaint(whole), "");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(complaint(whole.substr(0, length)), "") << "cut to " << length << " of " << whole.size();
  }
  EXPECT_NE(complaint(whole + "x"), "");
}

TEST_F(Safetensors, NoChangedByteOfTheHeaderIsMoreThanAUserError) {
  const std::vector<float> values(5, 1.0f);
  SafetensorsWriter writer(path_);
  writer.add_metadata("step", "3");
  writer.add("a", SafetensorsType::f32, {5}, values.data());
  writer.add("b", SafetensorsType::f32, {1, 2}, values.data());
  writer.finish();
  const std::string whole = contents_of(path_);
  int refused = 0;
  for (size_t i = 0; i < whole.size() - 28; ++i) {
    for (const unsigned char change : {0x01, 0x02, 0x10, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ change);
      refused += complaint(damaged) != "";  // any other exception, or a crash, fails the test
    }
  }
  EXPECT_GT(refused, 500);
}

TEST_F(Safetensors, HeadersThatContradictThemselvesAreRefused) {
  expect_complaint("[1]", 0, "expected an object");
  expect_complaint("{\"a\":", 0, "not JSON");
  expect_complaint(R"({"a":7})", 0, "expected an object");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "no data_offsets");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "takes 8");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 4, "of which there are 4");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "begins at byte 4 and ends at 0");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "holds -1");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "holds 1.0");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
                   "expected integers");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "than any file");
  expect_complaint(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "expected 2");
  expect_complaint(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,4]}})", 4, "dtype Q4");
  expect_complaint(R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4, "dtype 4");
  expect_complaint(R"({"__metadata__":{"x":1}})", 0, "expected a string");
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_complaint("{" + a + "," + a + "}", 4, "the key \"a\" is given twice");
  expect_complaint("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6, "inside another");
  expect_complaint("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "inside another");
  expect_complaint("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]}})", 9, "belong to no tensor");
  expect_complaint("{" + a + "}", 5, "end at byte 4, the file at 5");
}

TEST_F(Safetensors, AHeaderNestedVeryDeeplyIsRefused) {
  EXPECT_NE(complaint(file_with(std::string(1'000'000, '['), 0)), "");
  EXPECT_NE(complaint(file_with(R"({"a":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}", 0)), "");
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  for (const std::string& dtype : {nested, std::string("\"F32\"")}) {
    expect_complaint(R"({"a":{"dtype":)" + dtype + R"(,"shape":[)" + nested + R"(],"data_offsets":[0,4]}})", 4,
                     "nested more than 16 levels deep");
  }
}

TEST_F(Safetensors, FromMemoryIsReadAsFromAFile) {
  const std::string contents = file_with(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3);
  const SafetensorsFile file("memory", std::as_bytes(std::span(contents)));
  ASSERT_NE(file.find("a"), nullptr);
  EXPECT_EQ(file.find("a")->data, contents.data() + contents.size() - 3);
  const auto cut = std::as_bytes(std::span(contents)).first(contents.size() - 1);
  EXPECT_NE(message_of<UserError>([&] { SafetensorsFile("memory", cut); }).find("memory: incomplete or damaged"),
            std::string::npos);
}

TEST_F(Safetensors, AMissingFileAndAFolderAreRefusedByName) {
  EXPECT_NE(message_of<UserError>([&] { SafetensorsFile file(path_); }).find(path_), std::string::npos);
  EXPECT_NE(message_of<UserError>([&] { SafetensorsFile file(folder_.path()); }), "");
}

TEST_F(Safetensors, AFullDiskLeavesThePreviousFile) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    test::mount_small_disk(folder_.path(), "size=64k");
    const std::vector<float> values(1000, 1.0f), many(100'000, 2.0f);
    SafetensorsWriter writer(path_);
    writer.add("a", SafetensorsType::f32, {1000}, values.data());
    writer.finish();
    SafetensorsWriter larger(path_);
    larger.add("a", SafetensorsType::f32, {100'000}, many.data());
    const std::string message = message_of<UserError>([&] { larger.finish(); });
    EXPECT_NE(message.find("space"), std::string::npos) << message;
    EXPECT_EQ(SafetensorsFile(path_).find("a")->count(), 1000);
    const auto files = std::filesystem::directory_iterator(folder_.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "the unfinished file is gone";
  });
}

}  // namespace
}  // namespace brisk
