// A job: everything that decides a training, in one JSON file (docs/job.md lists its keys).
//
//   const auto job = brisk::TrainingJob::load(runtime, "job.json", {"training.batch_size=64"});
//   const auto other = brisk::TrainingJob::parse(runtime, R"({"data": {"train": "book.txt"}, "output": "runs/book"})");
#pragma once

#include <brisk/error.h>

#include <memory>
#include <string>
#include <vector>

namespace brisk {

class Runtime;

class BRISK_API TrainingJob {
 public:
  // `settings` override keys of the file: "path=value", the value JSON or else a string. What was understood in another
  // spelling is told in the log. UserError that lists every problem.
  static TrainingJob load(Runtime& runtime, const std::string& path, const std::vector<std::string>& settings = {});
  // From JSON text; its name, which is also that of the run, stands in for the file's in messages.
  static TrainingJob parse(Runtime& runtime, const std::string& text, const std::vector<std::string>& settings = {},
                           const std::string& name = "job");

  const std::string& task() const;  // language_model, classify, mlm
  std::string output() const;       // the run directory
  std::string text() const;         // JSON: every key with its value
  // What to do with the trained model, to be typed; `run` is its directory, quoted for a shell.
  std::string usage(const std::string& run) const;

  struct Content;  // brisk's own (src/api/training_job.h)
  const Content& content() const { return *content_; }

 private:
  explicit TrainingJob(std::shared_ptr<const Content> content);

  std::shared_ptr<const Content> content_;
};

// "data.train=[\"a b.txt\"]": a setting that gives a key these words, whatever characters they have.
BRISK_API std::string override_text(const std::string& path, const std::string& value);
BRISK_API std::string override_text(const std::string& path, const std::vector<std::string>& values);

}  // namespace brisk
