#include "data/read/byte_reader.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/byte_tokenizer.h"
#include "support/packed_text.h"

namespace brisk {
namespace {

std::string read_all(const std::string& path, size_t step = 1000) {
  const auto reader = open_byte_reader(path);
  std::string text, block(step, '\0');
  while (const size_t count = reader->read(block.data(), block.size())) text.append(block, 0, count);
  return text;
}

// Text that does not compress away: what a cut or a changed byte hits is data.
std::string varied_text(size_t size) {
  std::string text;
  for (uint64_t i = 0; text.size() < size; ++i) text += fmt::format("{:x} {}\n", mix64(i), i);
  return text;
}

struct PackingCase {
  const char* name;
  const char* extension;
  std::string (*pack)(const std::string& text);
};

class Packed : public testing::TestWithParam<PackingCase> {
 protected:
  std::string write(const std::string& bytes) const {
    return folder.write(std::string("a.txt") + GetParam().extension, bytes);
  }
  std::string pack(const std::string& text) const { return GetParam().pack(text); }
  std::string name() const { return std::string("a.txt") + GetParam().extension; }

  ScratchFolder folder;
};

TEST_P(Packed, TextComesOutAsItWentIn) {
  const std::string text = varied_text(3 << 20);
  const std::string path = write(pack(text));
  EXPECT_TRUE(read_all(path) == text);
  EXPECT_TRUE(read_all(path, 1 << 22) == text);
  EXPECT_EQ(read_all(write(pack(""))), "");
  const auto reader = open_byte_reader(write(pack(text)));
  reader->skip(1234567);
  std::string rest(10, '\0');
  ASSERT_EQ(reader->read(rest.data(), 10), 10u);
  EXPECT_EQ(rest, text.substr(1234567, 10));
}

TEST_P(Packed, SeveralInOneFileAreReadOneAfterTheOther) {
  EXPECT_EQ(read_all(write(pack("one\n") + pack("") + pack("two\n"))), "one\ntwo\n");
}

TEST_P(Packed, FileThatIsCutShortSaysHowFarItGoes) {
  const std::string text = varied_text(1 << 20), whole = pack(text);
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{9}, size_t{2}}) {
    const std::string path = write(whole.substr(0, size));
    const std::string message = user_error_of([&] { read_all(path); });
    EXPECT_HAS(message, name() + ": cut short");
    EXPECT_HAS(message, "copy or download the file again");
    EXPECT_HAS(message, size > 9 ? fmt::format("ends after {} bytes", size) : "");
  }
}

TEST_P(Packed, FileThatIsDamagedSaysWhere) {
  const std::string text = varied_text(1 << 20), whole = pack(text);
  int found = 0;
  for (size_t at = whole.size() / 4; at < whole.size(); at += whole.size() / 7) {
    std::string damaged = whole;
    for (size_t i = 0; i < 20 && at + i < damaged.size(); ++i) damaged[at + i] = static_cast<char>(~damaged[at + i]);
    const std::string path = write(damaged);
    try {
      // A frame of zstd may carry no checksum: then damage to the text alone cannot be known.
      EXPECT_FALSE(read_all(path) == text);
    } catch (const UserError& error) {
      ++found;
      EXPECT_HAS(std::string(error.what()), name() + ": damaged");
      EXPECT_HAS(std::string(error.what()), "of text came before");
    }
  }
  EXPECT_GT(found, 0);
}

TEST_P(Packed, FileThatIsSomethingElseIsNamedAsSuch) {
  EXPECT_HAS(user_error_of([&] { read_all(write("just some text, not packed\n")); }), "despite its name");
}

TEST_P(Packed, FileThatUnpacksToHundredsOfTimesItsSizeIsRefused) {
  const std::string path = write(pack(std::string(size_t{80} << 20, 'a')));
  const auto reader = open_byte_reader(path);
  std::string block(size_t{1} << 20, '\0');
  size_t read = 0;
  const std::string message = user_error_of([&] {
    while (const size_t count = reader->read(block.data(), block.size())) read += count;
  });
  EXPECT_HAS(message, name() + ": its first ");
  EXPECT_HAS(message, "which no text does");
  EXPECT_LT(read, size_t{66} << 20);
}

INSTANTIATE_TEST_SUITE_P(ByteReader, Packed,
                         testing::Values(PackingCase{"Gzip", ".gz",
                                                     [](const std::string& text) { return gzipped(text); }}
#if __has_include(<zstd.h>)
                                         ,
                                         PackingCase{"Zstd", ".zst", zstandard}
#endif
                                         ),
                         [](const auto& info) { return info.param.name; });

TEST(Gzip, AfterItsEndMayBeZerosButNothingElse) {
  const ScratchFolder folder;
  const std::string packed = gzipped("text\n");
  EXPECT_EQ(read_all(folder.write("a.gz", packed + std::string(5000, '\0'))), "text\n");
  EXPECT_HAS(user_error_of([&] { read_all(folder.write("b.gz", packed + "garbage")); }), "b.gz: damaged at byte");
}

TEST(ByteReader, NamesGoByTheirLastExtension) {
  EXPECT_EQ(packing_of("a.jsonl.GZ"), Packing::kGzip);
  EXPECT_EQ(packing_of("a.zst"), Packing::kZstd);
  EXPECT_EQ(packing_of("a.gz.txt"), Packing::kNone);
  EXPECT_EQ(unpacked_name("x/a.jsonl.gz"), "x/a.jsonl");
  EXPECT_EQ(unpacked_name("x/a.txt"), "x/a.txt");
}

}  // namespace
}  // namespace brisk
