#include "cli/job_argument.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;

// The last ending of a name, without that of a compressed file: ".txt" of "book.txt.gz".
std::string ending_of(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  std::string ending = name.extension().string();
  for (char& c : ending) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return ending;
}

// A job begins with a brace or a comment.
bool begins_like_a_job(const std::string& path) {
  const int file = open_regular_file(path);
  std::array<char, 4096> block;
  const ssize_t size = ::read(file, block.data(), block.size());
  ::close(file);
  std::string_view text(block.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos || text[first] == '{' || text[first] == '/';
}

}  // namespace

JobArgument look_at_job_argument(const std::string& argument) {
  std::error_code ignored;
  if (fs::is_directory(argument, ignored)) {
    const std::string job = (fs::path(argument) / "job.json").string();
    if (fs::exists(job, ignored)) return {JobArgument::Kind::run, job};
    user_error(
        "{}: a folder without a job.json: give a job file, or the folder of a run; to train on the text in it, "
        "brisk train JOB --data {}",
        argument, argument);
  }
  const std::string ending = ending_of(argument);
  if (ending == ".json" || !fs::is_regular_file(argument, ignored)) return {JobArgument::Kind::job, argument};
  if (ending == ".csv" || ending == ".tsv" || ending == ".tab") {
    user_error(
        "{}: a table, not a job; for a classifier of its rows write {{\"task\": \"classify\"}} to job.json and run "
        "brisk train job.json --data {}",
        argument, argument);
  }
  if (ending == ".safetensors" || ending == ".gguf" || ending == ".bin" || ending == ".pt") {
    user_error(
        "{}: a model, not a job; to train on from it, set model.from to it in a job: brisk train JOB --set "
        "model.from={}",
        argument, argument);
  }
  if (ending != ".txt" && ending != ".jsonl" && ending != ".ndjson" && ending != ".md" && begins_like_a_job(argument))
    return {JobArgument::Kind::job, argument};
  return {JobArgument::Kind::text, argument};
}

}  // namespace brisk
