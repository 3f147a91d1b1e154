// Corpora as people have them: compressed, mixed, weighted, larger than memory, broken; built by two jobs at once, and
// by one that is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

void write_gzip(const std::string& path, const std::string& text) {
  gzFile file = ::gzopen(path.c_str(), "wb1");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(::gzclose(file), Z_OK);
}

// Lines that are all different, about 50 bytes each.
std::string numbered_lines(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) {
    text += "Line " + std::to_string(i) + " of a long file that tells of nothing.\n";
  }
  return text;
}

// A vocabulary of its own, so that what is measured is not its training.
void write_tokenizer(const TemporaryFolder& folder) {
  write_text(folder / "small.txt", numbered_lines(0, 2000));
  const Outcome outcome =
      run_brisk({"tokenizer", "train", "--vocab-size", "400", "--output", "tokenizer.json", "small.txt"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
}

Json job_on(const Json& train) {
  Json job = small_job();
  job["data"]["train"] = train;
  job["data"]["tokenizer"] = "tokenizer.json";
  job["training"]["max_steps"] = 5;
  job["training"]["max_length"] = 16;
  job["data"]["validation_fraction"] = 0.001;
  return job;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> files_of(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) names.push_back(entry.path().filename().string());
  return names;
}

TEST(Corpus, LargerThanTheMemoryTrainsInConstantMemory) {
#ifdef BRISK_SANITIZED
  GTEST_SKIP() << "the address sanitizer's own memory is more than the limit";
#endif
  const TemporaryFolder folder;
  write_tokenizer(folder);
  constexpr int64_t kLimit = int64_t{80} << 20;
  std::filesystem::create_directory(folder / "corpus");
  constexpr int64_t kLines = 200000, kFiles = 16;  // 10 MB each
  int64_t bytes = 0;
  for (int64_t file = 0; file < kFiles; ++file) {
    const std::string text = numbered_lines(file * kLines, kLines);
    bytes += std::ssize(text);
    const std::string path = folder / ("corpus/" + std::to_string(file) + ".txt");
    file % 2 == 0 ? write_text(path, text) : write_gzip(path + ".gz", text);
  }
  ASSERT_GT(bytes, kLimit);
  write_job(folder, job_on("corpus"));
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run"}, folder, {.memory_limit_bytes = kLimit});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json statistics = read_json(folder / "run/statistics.json");
  EXPECT_GT(statistics["documents"], kFiles * kLines * 0.99);
  EXPECT_EQ(statistics["duplicates"]["documents"], 0);
}

TEST(Corpus, MayBeNewToTwoJobsThatStartAtOnce) {
  const TemporaryFolder folder;
  write_text(folder / "text.txt", numbered_lines(0, 200000));
  Json job = job_on("text.txt");
  job["data"].erase("tokenizer");
  write_job(folder, job);
  Process first({"train", "job.json", "--output", "one"}, folder);
  Process second({"train", "job.json", "--output", "two"}, folder);
  const Outcome one = first.finish(), two = second.finish();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(curve_of(folder / "one"), curve_of(folder / "two"));
  const std::vector<std::string> cache = files_of(folder / "cache/brisk");
  EXPECT_EQ(cache.size(), 2u);  // the vocabulary and the tokens, and no lock
}

TEST(Corpus, ThatIsHalfTokenisedByAKilledProcessIsGoneOnWith) {
  const TemporaryFolder folder;
  write_tokenizer(folder);
  write_text(folder / "text.txt", numbered_lines(0, 600000));
  write_job(folder, job_on("text.txt"));
  const std::string cache = folder / "cache/brisk";
  {
    Process process({"train", "job.json", "--output", "run"}, folder);
    const auto journal_is_there = [&] {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(cache, error)) {
        if (entry.path().string().ends_with("building-journal")) return true;
      }
      return false;
    };
    for (int i = 0; i < 2000 && !journal_is_there(); ++i) process.sleep(0.01);
    process.send(SIGKILL);
    EXPECT_EQ(process.finish().ended_by, SIGKILL);
  }
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "tokenized by an interrupted process")) << outcome.err;
  const Json resumed = read_json(folder / "run/statistics.json");
  std::filesystem::remove_all(cache);
  const Outcome fresh = run_brisk({"train", "job.json", "--output", "fresh"}, folder);
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(read_json(folder / "fresh/statistics.json"), resumed);
  EXPECT_EQ(curve_of(folder / "fresh"), curve_of(folder / "run"));
}

TEST(Corpus, OfSeveralSourcesIsDrawnByWeight) {
  const TemporaryFolder folder;
  write_tokenizer(folder);
  write_text(folder / "a.txt", numbered_lines(0, 400));
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    lines += "{\"article\": {\"body\": [\"News " + std::to_string(i) + " of the day.\", \"No more.\"]}}\n";
  }
  write_gzip(folder / "b.jsonl.gz", lines);
  Json job = job_on({"a.txt", {{"path", "b.jsonl.gz"}, {"weight", 2.5}, {"text_field", "article.body"}}});
  job["data"]["validation_fraction"] = 0;
  job["training"]["max_steps"] = 0;
  job["training"]["num_epochs"] = 2;
  const Outcome outcome = train_small(folder, job, "run");
  const Json statistics = read_json(folder / "run/statistics.json");
  ASSERT_EQ(statistics["sources"].size(), 2u) << outcome.err;
  EXPECT_EQ(statistics["sources"][1]["documents"], 100);
  EXPECT_EQ(statistics["sources"][1]["weight"], 2.5);
  EXPECT_NEAR(statistics["tokens_per_epoch"].get<double>(),
              statistics["sources"][0]["tokens"].get<double>() + 2.5 * statistics["sources"][1]["tokens"].get<double>(),
              20);
  // What the saved job says is what it was, from any folder.
  Json sources = job["data"]["train"];
  sources[0] = folder / sources[0].get<std::string>();
  sources[1]["path"] = folder / sources[1]["path"].get<std::string>();
  EXPECT_EQ(read_json(folder / "run/job.json")["data"]["train"], sources);
}

TEST(Corpus, WhoseValidationIsAlsoInTrainingIsWarnedAbout) {
  const TemporaryFolder folder;
  write_tokenizer(folder);
  write_text(folder / "a.txt", numbered_lines(0, 300) + numbered_lines(10, 5));
  write_text(folder / "b.txt", numbered_lines(290, 30));
  Json job = job_on("a.txt");
  job["data"]["validation"] = "b.txt";
  const Outcome outcome = train_small(folder, job, "run");
  EXPECT_TRUE(contains(outcome.err, "10 of the 30 documents of data.validation are also in data.train")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "5 documents are copies of an earlier one")) << outcome.err;
  EXPECT_EQ(read_json(folder / "run/statistics.json")["validation_shared_with_train"]["documents"], 10);
}

struct BadCorpus {
  const char* name;
  void (*prepare)(const TemporaryFolder& folder, Json& job);
  std::vector<std::string> parts;
};

class BadCorpusTest : public testing::TestWithParam<BadCorpus> {};

TEST_P(BadCorpusTest, IsRefusedWithItsPlaceAndLeavesNothing) {
  const TemporaryFolder folder;
  write_text(folder / "a.txt", numbered_lines(0, 100));
  Json job = job_on("a.txt");
  job["data"].erase("tokenizer");
  GetParam().prepare(folder, job);
  write_job(folder, job);
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run"}, folder);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  for (const std::string& part : GetParam().parts) EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  if (!std::filesystem::exists(folder / "cache/brisk")) return;
  for (const std::string& name : files_of(folder / "cache/brisk")) {
    EXPECT_TRUE(name.ends_with(".json")) << name;  // a vocabulary may be there, but nothing unfinished
  }
}

INSTANTIATE_TEST_SUITE_P(
    Corpus, BadCorpusTest,
    testing::Values(BadCorpus{"WeightZero",
                              [](const auto&, Json& job) {
                                job["data"]["train"] = {{{"path", "a.txt"}, {"weight", 0}}};
                              },
                              {"data.train[0]: weight: found 0, expected a number above 0"}},
                    BadCorpus{"WeightNegative",
                              [](const auto&, Json& job) {
                                job["data"]["train"] = {{"path", "a.txt"}, {"weight", -1}};
                              },
                              {"data.train: weight: found -1"}},
                    BadCorpus{"UnknownKey",
                              [](const auto&, Json& job) {
                                job["data"]["train"] = {{{"path", "a.txt"}, {"wieght", 2}}};
                              },
                              {"data.train[0]: wieght: unknown key; did you mean weight?"}},
                    BadCorpus{"NoPath",
                              [](const auto&, Json& job) {
                                job["data"]["train"] = {"a.txt", {{"weight", 2}}};
                              },
                              {"data.train[1]: path is missing"}},
                    BadCorpus{"NeitherPathNorObject",
                              [](const auto&, Json& job) {
                                job["data"]["train"] = {"a.txt", 3};
                              },
                              {"data.train[1]: found 3, expected a string"}},
                    BadCorpus{"CutGzip",
                              [](const auto& folder, Json& job) {
                                write_gzip(folder / "b.txt.gz", numbered_lines(0, 3000));
                                std::filesystem::resize_file(folder / "b.txt.gz",
                                                             std::filesystem::file_size(folder / "b.txt.gz") / 2);
                                job["data"]["train"] = "b.txt.gz";
                              },
                              {"b.txt.gz: cut short", "of text came before"}},
                    BadCorpus{"BinaryInside",
                              [](const auto& folder, Json& job) {
                                write_gzip(folder / "b.txt.gz", numbered_lines(0, 3) + std::string("x\0y", 3));
                                job["data"]["train"] = "b.txt.gz";
                              },
                              {"b.txt.gz", "line 4", "a NUL byte"}},
                    BadCorpus{"FieldMissing",
                              [](const auto& folder, Json& job) {
                                write_text(folder / "b.jsonl",
                                           "{\"a\": {\"text\": \"x\"}}\n{\"a\": {\"title\": \"y\"}}\n");
                                job["data"]["train"] = "b.jsonl";
                                job["data"]["text_field"] = "a.text";
                              },
                              {"b.jsonl: line 2: no field \"a.text\"; found in \"a\": title", "data.text_field"}},
                    BadCorpus{"NoTextAtAll",
                              [](const auto& folder, Json& job) {
                                std::filesystem::create_directory(folder / "in");
                                write_text(folder / "in/a.txt", "\n  \n");
                                write_text(folder / "in/b.jsonl", "{\"text\": \"\"}\n");
                                job["data"]["train"] = "in";
                              },
                              {"in: no text in any of the files"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace brisk::program
