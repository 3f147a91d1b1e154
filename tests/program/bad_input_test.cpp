// What a user gets wrong is met with one message that says where, what and how to mend it; exit code 2; and nothing is
// written.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

void expect_refused(const Outcome& outcome, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.out, "");
  const size_t first = outcome.err.find("brisk: ");
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("\nbrisk: ", first + 1), std::string::npos) << outcome.err;
  const std::string message = outcome.err.substr(first);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

struct BadJob {
  const char* name;
  std::function<void(const TemporaryFolder&, Json&)> spoil;
  std::vector<std::string> parts;  // that the message must have
};

void PrintTo(const BadJob& bad, std::ostream* stream) { *stream << bad.name; }

class BadJobs : public testing::TestWithParam<BadJob> {};

TEST_P(BadJobs, AreRefusedAndLeaveNothingBehind) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(60));
  Json job = small_job();
  GetParam().spoil(folder, job);
  if (!job.is_null()) write_job(folder, job);
  const Outcome outcome =
      run_brisk({"train", "job.json", "--output", "runs/deep/run"}, folder, {.timeout_seconds = 20});
  expect_refused(outcome, GetParam().parts);
  EXPECT_FALSE(std::filesystem::exists(folder / "runs")) << listing(folder / "runs");
}

std::string bytes_of_a_program() {
  std::string bytes =
      "\x7f"
      "ELF";
  for (int i = 0; i < 4000; ++i) bytes += static_cast<char>(i * 37);
  return bytes;
}

const std::vector<BadJob> kBadJobs = {
    {"UnknownKey",
     [](const auto&, Json& job) { job["model"]["d_modl"] = 32; },
     {"job.json", "model.d_modl", "did you mean", "model.d_model"}},
    {"UnknownSection",
     [](const auto&, Json& job) {
       job["trainig"] = {{"batch_size", 4}};
     },
     {"job.json", "trainig", "training"}},
    {"WrongType",
     [](const auto&, Json& job) { job["training"]["batch_size"] = "many"; },
     {"job.json", "training.batch_size", "many", "integer"}},
    {"OutOfRange", [](const auto&, Json& job) { job["model"]["dropout"] = 1.5; }, {"job.json", "model.dropout", "1.5"}},
    {"UnknownChoice",
     [](const auto&, Json& job) { job["training"]["lr_scheduler"] = "cosin"; },
     {"training.lr_scheduler", "cosin", "cosine"}},
    {"AMetricThatIsNotEvaluated",
     [](const auto&, Json& job) { job["training"]["best_by"] = "f1"; },
     {"training.best_by is \"f1\"", "task language_model", "it has loss, perplexity, accuracy"}},
    {"HeadsThatDoNotDivideTheWidth",
     [](const auto&, Json& job) { job["model"]["num_heads"] = 5; },
     {"model.d_model = 32", "model.num_heads = 5", "use num_heads = 4"}},
    {"NoJobFile", [](const auto&, Json& job) { job = nullptr; }, {"job.json", "No such file"}},
    {"BadJson",
     [](const auto& folder, Json& job) {
       write_text(folder / "job.json", "{\"model\": {\"d_model\": 32,\n  \"num_layers\" 2}}");
       job = nullptr;
     },
     {"job.json:2:16", "expected ':'"}},
    {"NoData", [](const auto&, Json& job) { job.erase("data"); }, {"data.train", "--data"}},
    {"MissingData", [](const auto&, Json& job) { job["data"]["train"] = "nowhere.txt"; }, {"nowhere.txt"}},
    {"MissingValidationData",
     [](const auto&, Json& job) { job["data"]["validation"] = "nowhere.txt"; },
     {"nowhere.txt"}},
    {"EmptyData", [](const auto& folder, Json&) { write_text(folder / "text.txt", ""); }, {"text.txt", "empty"}},
    {"BlankData", [](const auto& folder, Json&) { write_text(folder / "text.txt", "\n\n  \n"); }, {"text.txt"}},
    {"BinaryData",
     [](const auto& folder, Json&) { write_text(folder / "text.txt", bytes_of_a_program()); },
     {"text.txt", "binary"}},
    {"InvalidUtf8",
     [](const auto& folder, Json&) {
       write_text(folder / "text.txt", "A good line.\nA bad \xc3\x28 line.\nAnother one.\n");
     },
     {"text.txt", "line 2", "UTF-8"}},
    {"BadJsonLines",
     [](const auto& folder, Json& job) {
       write_text(folder / "text.jsonl", "{\"text\": \"fine\"}\n{\"text\": \"cut");
       job["data"]["train"] = "text.jsonl";
     },
     {"text.jsonl", "line 2"}},
    {"JsonLinesWithoutTheField",
     [](const auto& folder, Json& job) {
       write_text(folder / "text.jsonl", "{\"text\": \"fine\"}\n{\"txt\": \"not\"}\n");
       job["data"]["train"] = "text.jsonl";
     },
     {"text.jsonl", "line 2", "text"}},
    {"MicroBatchBelowTheLongestSequence",
     [](const auto&, Json& job) { job["training"]["micro_batch_tokens"] = 8; },
     {"training.micro_batch_tokens 8", "training.max_length"}},
    {"ModelLargerThanTheMemory",
     [](const auto&, Json& job) {
       job["model"] = {{"d_model", 65536}, {"num_layers", 48}, {"vocab_size", 320}};
       job["training"]["precision"] = "auto";
     },
     {"memory", "available", "model.d_model"}},
    {"BatchLargerThanTheMemory",
     [](const auto&, Json& job) {
       job["training"]["micro_batch_tokens"] = 16777216;
       job["training"]["batch_size"] = 1048576;
       job["model"]["num_layers"] = 50;
     },
     {"memory", "available", "training.micro_batch_tokens"}},
    {"VocabularyWithoutRoomForAllBytes",
     [](const auto&, Json& job) { job["model"]["vocab_size"] = 100; },
     {"model.vocab_size = 100", "257"}},
    {"CacheThatCannotBeMade",
     [](const auto&, Json& job) { job["data"]["cache_dir"] = "/proc/cache"; },
     {"/proc/cache", "data.cache_dir"}},
    {"MissingTokenizer", [](const auto&, Json& job) { job["data"]["tokenizer"] = "nowhere.json"; }, {"nowhere.json"}},
};

INSTANTIATE_TEST_SUITE_P(Each, BadJobs, testing::ValuesIn(kBadJobs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BadCommands, AreRefused) {
  TemporaryFolder folder;
  write_job(folder, small_job());
  for (const auto& [arguments, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"train", "job.json", "--epochs", "3"}, "--epochs"},
           {{"train", "job.json", "--dta", "text.txt"}, "--dta: brisk train has no such flag; did you mean --data?"},
           {{"bench", "lm", "--shaep", "small"}, "--shaep: brisk bench lm has no such flag; did you mean --shape?"},
           {{"trian", "job.json"}, "did you mean train"},
           {{"job", "shcema"}, "'shcema' is not a command of brisk job; did you mean schema?"},
           {{"train", "job.json", "--stop", "99999999999999h"}, "the maximum is"},
           {{"train", "job.json", "--set", "training={\"max_steps\":3}"}, "such as training.max_steps=3"},
           {{}, "--help"},
           {{"train"}, "job"},
           {{"train", "job.json", "--set", "training.batch_sise=4"}, "training.batch_size"},
           {{"train", "job.json", "--set", "training.batch_size"}, "training.batch_size"},
           {{"generate", "nowhere"}, "nowhere"},
           {{"generate", "job.json"}, "job.json"},
           {{"generate", "nowhere", "--temperature", "-1"}, "temperature"},
           {{"eval", "nowhere", "--data", "text.txt"}, "nowhere"},
           {{"bench", "lm", "--shape", "huge"}, "huge"},
           {{"bench", "lm", "--precision", "fp4"}, "fp4"},
           {{"tokenizer", "train", "--output", "t.json", "nowhere.txt"}, "nowhere.txt"},
           {{"tokenizer", "encode", "--tokenizer", "nowhere.json"}, "nowhere.json"},
           {{"tokenizer", "encode", "--tokenizer", "job.json"}, "job.json"}}) {
    const Outcome outcome = run_brisk(arguments, folder);
    EXPECT_EQ(outcome.exit_code, 2) << part << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

class BadOutput : public ::testing::Test {
 protected:
  BadOutput() {
    write_text(folder / "text.txt", english_like_text(60));
    write_job(folder, small_job());
  }
  TemporaryFolder folder;
};

TEST_F(BadOutput, ThatIsAFile) {
  write_text(folder / "run", "mine");
  expect_refused(run_brisk({"train", "job.json", "--output", "run"}, folder), {"run: a file", "--output"});
  EXPECT_EQ(read_text(folder / "run"), "mine");
}

TEST_F(BadOutput, ThatHoldsSomethingElse) {
  std::filesystem::create_directory(folder / "run");
  write_text(folder / "run/thesis.txt", "mine");
  expect_refused(run_brisk({"train", "job.json", "--output", "run"}, folder), {"run", "thesis.txt", "--output"});
  expect_refused(run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder), {"run", "thesis.txt"});
  EXPECT_EQ(listing(folder / "run"), "/thesis.txt 4\n");
}

TEST_F(BadOutput, ThatMayNotBeWrittenTo) {
  // Root may write where permissions say no; not even root makes folders in /proc.
  const std::string place = ::geteuid() == 0 ? "/proc" : folder / "locked";
  if (::geteuid() != 0) std::filesystem::create_directory(place);
  ::chmod(place.c_str(), 0555);
  expect_refused(run_brisk({"train", "job.json", "--output", place + "/run"}, folder), {place + "/run", "folder"});
  EXPECT_FALSE(std::filesystem::exists(place + "/run"));
}

// A run with two checkpoints, to be damaged.
class DamagedCheckpoint : public ::testing::Test {
 protected:
  DamagedCheckpoint() {
    Json job = small_job();
    job["training"]["save_steps"] = 5;
    job["training"]["max_steps"] = 1000000;
    write_text(folder / "text.txt", english_like_text(60));
    write_job(folder, job);
    Process process({"train", "job.json", "--output", "run"}, folder);
    EXPECT_TRUE(process.wait_for("step 12/"));
    process.send(SIGTERM);
    EXPECT_EQ(process.finish().exit_code, 130);
    names = checkpoints_of(folder / "run");
  }

  std::string file(const std::string& checkpoint, const std::string& name) const {
    return folder / "run/checkpoints/" + checkpoint + "/" + name;
  }

  TemporaryFolder folder;
  std::vector<std::string> names;
};

TEST_F(DamagedCheckpoint, IsRefusedWithAWayOut) {
  ASSERT_EQ(names.size(), 2U);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string path = file(names[1], name), whole = read_text(path);
    for (const size_t kept : {size_t{0}, size_t{5}, whole.size() / 2, whole.size() - 3}) {
      write_text(path, whole.substr(0, kept));
      const std::string before = listing(folder / "run"), curve = read_text(folder / "run/metrics.jsonl");
      const Outcome outcome = run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder);
      expect_refused(outcome, {std::string("checkpoints/") + names[1] + "/" + name, "remove", names[0]});
      EXPECT_EQ(listing(folder / "run"), before);
      EXPECT_EQ(read_text(folder / "run/metrics.jsonl"), curve);
      if (std::string(name) == "model.safetensors") {
        expect_refused(run_brisk({"generate", "run/checkpoints/" + names[1]}, folder), {name});
      }
    }
    std::filesystem::remove(path);
    expect_refused(run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder), {name});
    write_text(path, whole);
  }
  // The advice works: without the damaged one, the run goes on from the one before.
  write_text(file(names[1], "model.safetensors"), "");
  std::filesystem::remove_all(folder / "run/checkpoints/" + names[1]);
  Process process({"train", "job.json", "--output", "run", "--resume"}, folder);
  EXPECT_TRUE(process.wait_for("step 30/"));
  process.send(SIGINT);
  EXPECT_EQ(process.finish().exit_code, 130);
}

TEST_F(DamagedCheckpoint, NamesOneThatIsWholeToWhoeverReadsIt) {
  ASSERT_EQ(names.size(), 2U);
  write_text(file(names[1], "model.safetensors"), "12345678");
  expect_refused(run_brisk({"generate", "run"}, folder), {names[1], "run/checkpoints/" + names[0]});
  EXPECT_EQ(run_brisk({"generate", "run/checkpoints/" + names[0], "--max-tokens", "3"}, folder).exit_code, 0);
}

TEST_F(DamagedCheckpoint, OfAnotherModelIsRefused) {
  ASSERT_EQ(names.size(), 2U);
  // Another job's checkpoint, copied over.
  Json job = small_job();
  job["model"]["d_model"] = 48;
  job["training"]["max_steps"] = 2;
  train_small(folder, job, "other");
  std::filesystem::remove_all(folder / "run/checkpoints");
  std::filesystem::copy(folder / "other/checkpoints", folder / "run/checkpoints",
                        std::filesystem::copy_options::recursive);
  expect_refused(run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder),
                 {"model.safetensors", "expected"});
}

}  // namespace
}  // namespace brisk::program
