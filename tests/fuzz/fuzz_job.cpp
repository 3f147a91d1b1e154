// A job file; behind a NUL, and behind every further one, what --set gives.
#include "fuzz/fuzz_input.h"
#include "job/job.h"

using namespace brisk;

namespace {

Job read_back(const std::string& text) {
  Job job;
  fuzz::require(fuzz::unless_refused([&] { job = job_from_json_text(text, "saved.json"); }), "what is saved is a job");
  return job;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts(1);
  for (const char letter : fuzz::text_of(data, size)) {
    if (letter == '\0') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  const std::vector<std::string> overrides(parts.begin() + 1, parts.end());
  fuzz::unless_refused([&] {
    std::vector<std::string> notes;
    Job job = job_from_json_text(parts[0], "job.json", overrides, notes);
    const bool resolved = fuzz::unless_refused([&] { resolve_defaults(job); });
    const std::string text = job_to_json_text(job);
    Job again = read_back(text);
    if (resolved) fuzz::require(resolve_defaults(again).empty(), "a resolved job has nothing left to fill");
    fuzz::require(job_to_json_text(again) == text, "a job written, read and resolved is the same");
  });
  return 0;
}
