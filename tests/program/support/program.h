// Starts the built program as a user would, and sees what a user sees.
//
//   TemporaryFolder folder;
//   const Outcome outcome = run_brisk({"train", job, "--data", text}, folder);
//   EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
//
//   Process process({"train", job, "--data", text}, folder);
//   process.wait_for("step 17/");        // on standard error
//   process.send(SIGINT);
//   const Outcome outcome = process.finish();
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace brisk::program {

// Made anew, and gone with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Outcome {
  int exit_code = -1;      // -1: a signal ended it
  int ended_by = 0;        // that signal
  bool timed_out = false;  // and was killed for it
  std::string out, err;
};

struct ProcessOptions {
  std::string input;                     // on standard input
  std::vector<std::string> environment;  // "BRISK_ISA=avx2", besides the test's own
  std::string output_path;               // standard output goes there, and not into Outcome::out
  bool terminal = false;                 // standard error is a terminal, 120 columns wide, and not a pipe
  double timeout_seconds = 120;
  int64_t memory_limit_bytes = 0;  // of everything but files that are mapped (RLIMIT_DATA); 0: none
};

// One run of the program. Its current folder is `folder`, and its token cache lies there too.
class Process {
 public:
  Process(std::vector<std::string> arguments, const TemporaryFolder& folder, ProcessOptions options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads until `text` stands on standard error; false where the program ended, or the time was over, without it.
  bool wait_for(const std::string& text);
  void sleep(double seconds);  // reading meanwhile, so that a full pipe does not hold the program up
  void send(int signal_number);
  Outcome finish();  // waits for the end

 private:
  bool read_some(double seconds);  // false where both pipes are at their end
  void reap();

  ProcessOptions options_;
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  double deadline_ = 0;
  bool reaped_ = false;
  Outcome outcome_;
};

Outcome run_brisk(std::vector<std::string> arguments, const TemporaryFolder& folder, ProcessOptions options = {});

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

// Every file below `path` with its size (a lock, which holds a process id, without), and every folder, a line each and
// sorted: to see that nothing changed.
std::string listing(const std::string& path);

// For looking at what it said.
std::vector<std::string> words_of(const std::string& text);
bool has(const std::string& text, const std::string& part);

}  // namespace brisk::program
