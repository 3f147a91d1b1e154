// A whole run with training.padding: the curve of one without, and what its files say of the padding.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/lines.h"
#include "base/parse_json.h"
#include "report/read/run_record.h"
#include "support/scratch_folder.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

using test::ScratchFolder;

Job short_lines_job(const ScratchFolder& folder, const std::string& padding) {
  std::string text;
  for (int i = 0; i < 150; ++i)
    text += std::string(static_cast<size_t>(3 + i * 7 % 20), static_cast<char>('a' + i % 26)) + "\n";
  test::put_contents(folder / "text.txt", text);
  Job job = job_from_json_text(
      R"({"model": {"d_model": 16, "num_layers": 1, "num_heads": 1, "vocab_size": 280, "dropout": 0.1},
          "training": {"max_length": 40, "batch_size": 8, "max_steps": 12, "threads": 1, "precision": "fp32",
                       "tensorboard": false, "logging_steps": 4},
          "data": {"document": "line"}})",
      "job");
  job.training.padding = padding;
  job.output = folder / padding;
  job.data.train = {folder / "text.txt"};
  job.data.cache_dir = folder / "cache";
  resolve_defaults(job);
  return job;
}

TEST(PaddingOfAWholeRun, ChangesNoCurveAndIsToldInTheRunsFiles) {
  const ScratchFolder folder;
  const TrainOutcome ragged = train(short_lines_job(folder, "none"), {});
  const RunTotals plain = read_run_figures(folder / "none").totals;
  EXPECT_GT(plain.tokens, 0);
  EXPECT_EQ(plain.rows, plain.tokens);
  EXPECT_FALSE(ragged.summary.padding.has_value());
  EXPECT_EQ(test::contents_of(folder / "none/metrics.jsonl").find("padding"), std::string::npos);
  for (const char* padding : {"longest", "max_length"}) {
    SCOPED_TRACE(padding);
    const TrainOutcome padded = train(short_lines_job(folder, padding), {});
    EXPECT_NEAR(padded.summary.last_step->loss(), ragged.summary.last_step->loss(), 1e-5);
    EXPECT_EQ(padded.summary.last_step->tokens, ragged.summary.last_step->tokens);
    const RunTotals totals = read_run_figures(folder / padding).totals;
    EXPECT_EQ(totals.tokens, plain.tokens);
    EXPECT_GT(totals.rows, totals.tokens);
    if (padding == std::string("max_length")) {
      EXPECT_EQ(totals.rows, totals.sequences * 40);
    }
    ASSERT_TRUE(padded.summary.padding.has_value());
    EXPECT_DOUBLE_EQ(*padded.summary.padding,
                     1 - static_cast<double>(totals.tokens) / static_cast<double>(totals.rows));
    int lines = 0;
    for_each_log_line(folder / (padding + std::string("/metrics.jsonl")), [&](const LogLine& line) {
      const auto json = parse_json(std::string(line.text), "metrics.jsonl", "");
      if (!json.contains("learning_rate")) return;
      ++lines;
      EXPECT_GT(json.value("padding", 0.0), 0.2);
      EXPECT_LT(json.value("padding", 1.0), 1.0);
    });
    EXPECT_EQ(lines, 3);
  }
}

}  // namespace
}  // namespace brisk
