// The event files that TensorBoard reads: checksums, framing, messages, and what a resumed run leaves of them.
#include "report/tensorboard/event_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "report/tensorboard/crc32c.h"
#include "report/tensorboard/histogram.h"
#include "report/tensorboard/record.h"
#include "report/tensorboard/wire.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::contents_of;
using test::put_contents;
using test::ScratchFolder;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// The vectors of RFC 3720, B.4, and the usual check value.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising(32, '\0'), falling(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  std::copy(rising.rbegin(), rising.rend(), falling.begin());
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(falling), 0x113FDB5Cu);
  EXPECT_EQ(crc32c(""), 0u);
}

// Made by TensorBoard's own writer (RecordWriter over a string buffer).
TEST(Record, IsFramedAsTensorBoardFramesIt) {
  EXPECT_EQ(hex(framed_record("")), "000000000000000029039807d8ea82a2");
  EXPECT_EQ(hex(framed_record("brisk")), "0500000000000000eab2043e627269736baae26e1b");
}

TEST(Record, ReadsBackUntilTheFirstThatIsDamaged) {
  const std::string first = framed_record("one"), second = framed_record(std::string(300, 'x'));
  const std::string file = first + second + framed_record("three");
  RecordReader whole(file);
  std::vector<std::string> records;
  while (whole.next()) records.emplace_back(whole.record());
  EXPECT_EQ(records, (std::vector<std::string>{"one", std::string(300, 'x'), "three"}));
  EXPECT_TRUE(whole.at_end());

  for (size_t at = first.size(); at < first.size() + second.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    RecordReader reader(damaged);
    EXPECT_TRUE(reader.next());
    EXPECT_FALSE(reader.next()) << "byte " << at;
    EXPECT_FALSE(reader.at_end());
  }
  for (size_t kept = 0; kept < first.size(); ++kept) EXPECT_FALSE(RecordReader(file.substr(0, kept)).next());
}

TEST(Wire, WritesTheBytesOfTheFormat) {
  WireMessage message;
  message.add_integer(1, 150);
  message.add_integer(2, -1);
  message.add_text(16, "ab");
  message.add_float(3, 1.0f);
  message.add_double(4, 1.0);
  message.add_doubles(7, std::vector<double>{1.0, -2.0});
  EXPECT_EQ(hex(message.bytes()),
            "089601"
            "10ffffffffffffffffff01"
            "8201026162"
            "1d0000803f"
            "21000000000000f03f"
            "3a10000000000000f03f00000000000000c0");
}

float as_float(const WireReader& reader) { return std::bit_cast<float>(static_cast<uint32_t>(reader.number())); }

TEST(Wire, IsReadBackAndGarbageIsNoMessage) {
  WireMessage message;
  message.add_double(1, 2.5);
  message.add_integer(2, 300);
  message.add_text(5, "text");
  message.add_float(9, -0.5f);
  WireReader reader(message.bytes());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(std::bit_cast<double>(reader.number()), 2.5);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 300u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "text");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(as_float(reader), -0.5f);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.whole());
  WireReader cut(std::string_view(message.bytes()).substr(0, message.bytes().size() - 1));
  while (cut.next()) {
  }
  EXPECT_FALSE(cut.whole());
  WireReader garbage("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  EXPECT_FALSE(garbage.next());
  EXPECT_FALSE(garbage.whole());
}

struct Scalar {
  std::string tag;
  int64_t step = 0;
  float value = 0;
  bool operator==(const Scalar&) const = default;
};

// The scalars of a file and its first record's version.
std::vector<Scalar> scalars_of(const std::string& path, std::string* version = nullptr) {
  const std::string bytes = contents_of(path);
  std::vector<Scalar> scalars;
  RecordReader records(bytes);
  while (records.next()) {
    Scalar scalar;
    std::string_view summary;
    for (WireReader event(records.record()); event.next();) {
      if (event.field() == 2) scalar.step = static_cast<int64_t>(event.number());
      if (event.field() == 3 && version != nullptr) *version = event.bytes();
      if (event.field() == 5) summary = event.bytes();
    }
    for (WireReader values(summary); values.next();) {
      for (WireReader one(values.bytes()); one.next();) {
        if (one.field() == 1) scalar.tag = one.bytes();
        if (one.field() == 2) scalar.value = as_float(one);
      }
      scalars.push_back(scalar);
    }
  }
  EXPECT_TRUE(records.at_end());
  return scalars;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(EventFile, HoldsAVersionAndTheScalars) {
  const ScratchFolder folder;
  EventFile events(folder / "tensorboard", 0);
  events.scalar("loss/train", 10, 5.25);
  events.scalar("loss/train", 20, std::numeric_limits<double>::quiet_NaN());
  events.scalar("learning_rate", 20, 1e-3);
  events.write();
  EXPECT_EQ(events.problem(), "");
  std::string version;
  EXPECT_EQ(scalars_of(events.path(), &version),
            (std::vector<Scalar>{{"loss/train", 10, 5.25f}, {"learning_rate", 20, 1e-3f}}));
  EXPECT_EQ(version, "brain.Event:2");
  EXPECT_NE(events.path().find("/events.out.tfevents."), std::string::npos);
}

TEST(EventFile, OfALaterProcessHasALaterName) {
  const ScratchFolder folder;
  put_contents(folder / "events.out.tfevents.9000000000.host.1.brisk", "");  // a clock that was ahead
  const EventFile first(folder.path(), 0), second(folder.path(), 0);
  EXPECT_EQ(files_in(folder.path()), (std::vector<std::string>{folder / "events.out.tfevents.9000000000.host.1.brisk",
                                                               first.path(), second.path()}));
}

TEST(EventFile, AResumedRunHasNoStepTwice) {
  const ScratchFolder folder;
  std::string path;
  {
    EventFile events(folder.path(), 0);
    for (int64_t step = 1; step <= 30; ++step) events.scalar("loss/train", step, 10.0 / static_cast<double>(step));
    events.write();
    path = events.path();
  }
  put_contents(path, contents_of(path) + "half a record that a crash");
  put_contents(path + ".partial-7", contents_of(path));  // a process killed while it cut the file
  EXPECT_EQ(cut_events(folder.path(), 20), 11);          // ten steps and the torn end
  EXPECT_EQ(cut_events(folder.path(), 20), 0);
  EventFile events(folder.path(), 20);
  for (int64_t step = 21; step <= 40; ++step) events.scalar("loss/train", step, 1);
  events.write();
  std::map<int64_t, int> times;
  for (const std::string& file : files_in(folder.path())) {
    for (const Scalar& scalar : scalars_of(file)) ++times[scalar.step];
  }
  EXPECT_EQ(times.size(), 40u);
  for (const auto& [step, count] : times) EXPECT_EQ(count, 1) << step;
}

TEST(EventFile, NoFolderIsNothingToCut) { EXPECT_EQ(cut_events("/no/such/folder", 3), 0); }

TEST(EventFile, AFolderThatCannotBeMadeIsAUserError) {
  const ScratchFolder folder;
  put_contents(folder / "tensorboard", "a file");
  EXPECT_NE(test::message_of<UserError>([&] { EventFile events(folder / "tensorboard", 0); }).find("tensorboard"),
            std::string::npos);
}

TEST(Histogram, CountsEveryFiniteValueInItsBucket) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.0f);
  values.push_back(std::numeric_limits<float>::infinity());
  values.push_back(std::nanf(""));
  Histogram histogram;
  const std::span<const float> all = values;
  for (const auto& piece : {all.first(300), all.subspan(300)}) histogram.see(piece);
  for (const auto& piece : {all.first(300), all.subspan(300)}) histogram.count(piece);
  EXPECT_EQ(histogram.values, 1000);
  EXPECT_EQ(histogram.not_finite, 2);
  EXPECT_EQ(histogram.least, 0);
  EXPECT_EQ(histogram.greatest, 999);
  EXPECT_EQ(histogram.sum, 999 * 500);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), 1000);
  EXPECT_EQ(histogram.limits.back(), 999);
  EXPECT_EQ(histogram.counts.size(), 64u);
  for (const double count : histogram.counts) EXPECT_NEAR(count, 1000.0 / 64, 1.5);
}

TEST(Histogram, OfOneValueAndOfNone) {
  const std::vector<float> same(5, 2.0f);
  Histogram histogram;
  histogram.see(same);
  histogram.count(same);
  EXPECT_EQ(histogram.counts, std::vector<double>{5});
  EXPECT_EQ(histogram.limits, std::vector<double>{2});
  Histogram none;
  none.see({});
  none.count({});
  EXPECT_TRUE(none.counts.empty());
}

}  // namespace
}  // namespace brisk
