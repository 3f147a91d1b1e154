#include "cli/job_argument.h"

#include <filesystem>
#include <fstream>

#include "cli/messages.h"

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
  std::ifstream file(path, std::ios::binary);
  char first = 0;
  file >> first;
  if (first == '\xEF') {  // a byte order mark
    file.ignore(2);
    file >> first;
  }
  return !file || first == '{' || first == '/';
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
