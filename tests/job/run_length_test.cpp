#include "job/run_length.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

RunLength parsed(const char* text) { return parse_run_length(text, "training.stop"); }

std::string problem(const char* text) {
  return test::message_of<UserError>([&] { parsed(text); });
}

TEST(RunLength, CountsEpochsUpdatesTokensAndTime) {
  EXPECT_EQ(parsed("2e").unit, RunLength::Unit::epochs);
  EXPECT_EQ(parsed("2e").amount, 2);
  EXPECT_EQ(parsed("0.5e").amount, 0.5);
  EXPECT_EQ(parsed("500u").unit, RunLength::Unit::updates);
  EXPECT_EQ(parsed("500u").amount, 500);
  EXPECT_EQ(parsed("1.5Ku").amount, 1500);
  EXPECT_EQ(parsed("10Mt").unit, RunLength::Unit::tokens);
  EXPECT_EQ(parsed("10Mt").amount, 10e6);
  EXPECT_EQ(parsed("2Gt").amount, 2e9);
  EXPECT_EQ(parsed("30m").unit, RunLength::Unit::seconds);
  EXPECT_EQ(parsed("30m").amount, 1800);
  EXPECT_EQ(parsed("90s").amount, 90);
  EXPECT_EQ(parsed("1h30m").amount, 5400);
  EXPECT_EQ(parsed("0.5h").amount, 1800);
  EXPECT_EQ(parsed("auto").unit, RunLength::Unit::allocation);
}

TEST(RunLength, RefusesWhatItCannotBeSureOf) {
  for (const char* text : {"",     "autos", "30",   "m",    "30x",  "30 m",  "-5m",
                           "0e",   "0s",    "5e3u", "2e1m", "1h5u", "5u1h",  "nan",
                           "infm", "inf",   "30Mm", "2Ke",  "10M",  "1e30t", "99999999999999999999999u"}) {
    const std::string message = problem(text);
    EXPECT_NE(message.find("training.stop"), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find("\"30m\""), std::string::npos) << text << ": " << message;
  }
}

TEST(RunLength, NamesWhatWasProbablyMeant) {
  EXPECT_NE(problem("30").find("30m"), std::string::npos);
  EXPECT_NE(problem("10M").find("10Mt"), std::string::npos);
}

}  // namespace
}  // namespace brisk
