// Files made to harm: whatever lies in place of a job, a model or a run's file, every command answers with one readable
// message and exit code 2, at once, and writes nothing elsewhere.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

namespace fs = std::filesystem;

const std::string kAttack = "\x1b]0;gone\x07\x1b[2J";

std::string deep() { return std::string(100'000, '[') + std::string(100'000, ']'); }

std::string many_keys() {
  std::string text = "{\"model_type\": \"gpt2\"";
  for (int i = 0; i < 100'000; ++i) text += ", \"key" + std::to_string(i) + "\": 1";
  return text + "}";
}

bool is_readable(const std::string& text) {
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t') return false;
  }
  return text.size() < 10'000;
}

// One message, that a terminal can show.
void expect_hostile_refused(const Outcome& outcome, const std::vector<std::string>& parts) {
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.ended_by, 0) << outcome.err.substr(0, 2000);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err.substr(0, 2000);
  EXPECT_TRUE(is_readable(outcome.err)) << outcome.err.substr(0, 2000);
  for (const std::string& part : parts) EXPECT_TRUE(has(outcome.err, part)) << part << "\n" << outcome.err;
}

class HostileFiles : public ::testing::Test {
 protected:
  Outcome run(std::vector<std::string> arguments, ProcessOptions options = {}) {
    options.timeout_seconds = 30;
    options.memory_limit_bytes = int64_t{2} << 30;
    return run_brisk(std::move(arguments), folder_, options);
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    write_text(folder_ / name, text);
  }
  void make_pipe(const std::string& name) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
  }
  void make_link(const std::string& target, const std::string& name) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    fs::create_symlink(target, folder_ / name);
  }

  TemporaryFolder folder_;
};

TEST_F(HostileFiles, WhatIsNoFileIsNotWaitedFor) {
  make_pipe("pipe");
  make_pipe("config/config.json");
  write("weights/config.json", R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 300})");
  make_pipe("weights/model.safetensors");
  make_link("/dev/zero", "zeros/config.json");
  make_pipe("run/job.json");
  write("text.txt", "a text\n");
  expect_hostile_refused(run({"train", "pipe"}), {"pipe: it is a pipe (FIFO), expected a file"});
  expect_hostile_refused(run({"train", "/dev/zero"}), {"/dev/zero: it is a device"});
  expect_hostile_refused(run({"train", "."}), {"a folder without a job.json"});
  expect_hostile_refused(run({"generate", "config"}), {"config/config.json: it is a pipe (FIFO)"});
  expect_hostile_refused(run({"generate", "weights"}), {"weights/model.safetensors: it is a pipe (FIFO)"});
  expect_hostile_refused(run({"generate", "zeros"}), {"zeros/config.json: it is a device"});
  expect_hostile_refused(run({"generate", "pipe"}), {"pipe: it is a pipe (FIFO)"});
  expect_hostile_refused(run({"report", "run"}), {"run/job.json: it is a pipe (FIFO)"});
  expect_hostile_refused(run({"tokenizer", "encode", "--tokenizer", "pipe"}, {.input = "a"}),
                         {"pipe: it is a pipe (FIFO)"});
  write("job.json", small_job().dump());
  expect_hostile_refused(run({"train", "job.json", "--data", "pipe"}), {"pipe: not a regular file"});
}

TEST_F(HostileFiles, APipeFromTheShellIsRead) {
  expect_hostile_refused(run({"train", "/dev/stdin"}, {.input = R"({"model": {"d_modl": 3}})"}),
                         {"/dev/stdin: model.d_modl: unknown key; did you mean model.d_model?"});
}

TEST_F(HostileFiles, SparseFilesAreNotRead) {
  write("a/config.json", "");
  fs::resize_file(folder_ / "a/config.json", uint64_t{1} << 40);
  write("job.json", "");
  fs::resize_file(folder_ / "job.json", uint64_t{1} << 40);
  expect_hostile_refused(run({"generate", "a"}), {"it has 1.00 TiB", "a model's configuration has at most 64.0 MiB"});
  expect_hostile_refused(run({"train", "job.json"}), {"it has 1.00 TiB", "a job has at most 16.0 MiB"});
}

TEST_F(HostileFiles, DeepAndWideJsonIsReadInItsLimits) {
  const std::string levels = "nested more than 100 levels deep";
  write("a/config.json", "{\"a\": " + deep() + "}");
  expect_hostile_refused(run({"generate", "a"}),
                         {"a/config.json: not JSON that brisk reads: ", levels, "fetch the file again"});
  write("a/config.json", many_keys());
  expect_hostile_refused(run({"generate", "a"}), {"a/config.json: it has no "});
  write("a/config.json", R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 300})");
  write("a/model.safetensors.index.json", "{\"weight_map\": " + deep() + "}");
  expect_hostile_refused(run({"generate", "a"}), {"a/model.safetensors.index.json: ", levels});
  write("a/model.safetensors.index.json", "{\"weight_map\": {\"a\": \"b\", \"a\": \"c\"}}");
  expect_hostile_refused(run({"generate", "a"}), {"the key \"a\" is given twice"});
  write("run/job.json", "{\"a\": " + deep() + "}");
  write("run/tokenizer.json", "{}");
  expect_hostile_refused(run({"generate", "run"}), {"run/job.json: ", "nested more than 32 levels deep"});
  write("run/ledger.jsonl", "{\"a\": " + deep() + "}\n");
  write("run/metrics.jsonl", many_keys() + "\n" + deep() + "\n{\"step\": 1, \"loss\": 1e17}\n" +
                                 "{\"step\": 2, \"loss\": 100000000000000016}\n");
  const Outcome report = run({"report", "run"}), compare = run({"compare", "run", "run"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(compare.exit_code, 0) << compare.err;
  EXPECT_TRUE(has(report.err, "run/metrics.jsonl: 2 lines are not JSON objects")) << report.err;
}

TEST_F(HostileFiles, NothingThatATerminalObeysIsShown) {
  const std::string name = kAttack + std::string(1 << 20, 'a');
  write("a/config.json", Json{{"model_type", name}}.dump());
  expect_hostile_refused(run({"generate", "a"}), {"model_type is \"\\x1b]0;gone\\x07\\x1b[2Jaaa", "... (1.00 MiB)\""});
  write("job.json", Json{{"model", {{name, 1}}}, {"training", {{"lr_scheduler", name}}}}.dump());
  expect_hostile_refused(run({"train", "job.json"}),
                         {"model.\\x1b]0;gone\\x07\\x1b[2Jaaa", "(1.00 MiB)", "unknown key"});
  const std::string header = Json{{name, {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {0, 8}}}}}.dump();
  const uint64_t length = header.size();
  write("a/config.json", R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 300})");
  write("a/model.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(8, '\0'));
  expect_hostile_refused(run({"generate", "a"}), {"'\\x1b]0;gone\\x07\\x1b[2Jaaa", "(1.00 MiB)' has 8 bytes"});
  write("t/vocab.json", R"({"a": 0})");
  write("t/merges.txt", "#version: 0.2\n" + name + "\n");
  expect_hostile_refused(run({"tokenizer", "encode", "--tokenizer", "t"}, {.input = "a"}), {"t/"});
  write("rows.jsonl", Json{{name, 3}}.dump() + "\n");
  Json job = small_job();
  job["data"]["train"] = {"rows.jsonl"};
  write("job.json", job.dump());
  expect_hostile_refused(run({"train", "job.json"}),
                         {"rows.jsonl: line 1: no field \"text\"; found: \\x1b]0;gone\\x07"});
}

TEST_F(HostileFiles, LinksInARunFolderLeadNothingElsewhere) {
  write("elsewhere/precious", "precious");
  write("elsewhere/.step-00000005.partial/file", "");
  const std::string before = listing(folder_ / "elsewhere");
  write("text.txt", english_like_text(60));
  Json job = small_job();
  job["training"]["max_steps"] = 2;
  write("job.json", job.dump());
  ASSERT_EQ(run({"train", "job.json", "--output", "run"}).exit_code, 0);
  for (const std::string name : {"report.html", ".lock", "metrics.jsonl", "ledger.jsonl", "summary.json", "job.json",
                                 "checkpoints", "tensorboard"}) {
    const bool is_folder = fs::is_directory(folder_ / ("run/" + name));
    const std::string own = folder_ / ("run/" + name), aside = folder_ / "aside";
    const bool there = fs::exists(own);
    if (there) fs::rename(own, aside);
    fs::create_symlink(folder_ / (is_folder ? "elsewhere" : "elsewhere/precious"), own);
    if (name == "job.json") {  // which must be one, to come so far
      fs::copy_file(aside, folder_ / "elsewhere/precious", fs::copy_options::overwrite_existing);
    }
    expect_hostile_refused(run({"train", "job.json", "--output", "run", "--resume"}),
                           {name + ": it is a symbolic link to "});
    if (name == "report.html") expect_hostile_refused(run({"report", "run"}), {name + ": it is a symbolic link to "});
    if (name == "job.json") write("elsewhere/precious", "precious");
    fs::remove(own);
    if (there) fs::rename(aside, own);
    EXPECT_EQ(listing(folder_ / "elsewhere"), before) << name;
    EXPECT_EQ(read_text(folder_ / "elsewhere/precious"), "precious") << name;
  }
  EXPECT_EQ(run({"train", "job.json", "--output", "run", "--resume"}).exit_code, 0);
  // A path that the user names may be a link.
  write("elsewhere/page.html", "an older one");
  make_link(folder_ / "elsewhere/page.html", "page.html");
  EXPECT_EQ(run({"report", "run", "--output", "page.html"}).exit_code, 0);
  EXPECT_TRUE(has(read_text(folder_ / "elsewhere/page.html"), "<html"));
}

TEST_F(HostileFiles, NoTextOfARunIsMarkupOfAPage) {
  const std::string attack = "<script>alert(1)</script>";
  write("a/job.json", "{}");
  write("b/job.json", Json{{"task", attack}}.dump());
  const Outcome outcome = run({"compare", "a", "b", "--html", "page.html"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(has(read_text(folder_ / "page.html"), "<script>alert"));
  EXPECT_TRUE(has(read_text(folder_ / "page.html"), "&lt;script&gt;alert(1)"));
}

}  // namespace
}  // namespace brisk::program
