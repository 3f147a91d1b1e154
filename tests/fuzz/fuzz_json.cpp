// JSON: by the reader of files, of a run's lines and of jobs. nlohmann's own parser says what is JSON.
#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "base/text/unicode.h"
#include "fuzz/fuzz_input.h"

using namespace brisk;

namespace {

template <typename Json>
void compare(std::string_view text, const JsonLimits& limits) {
  JsonProblem problem;
  const Json ours = parse_json_or_discard<Json>(text, limits, &problem);
  fuzz::require(ours.is_discarded() == !problem.what.empty(), "what is refused has a reason");
  const std::string shown = json_in_message(ours);
  fuzz::require(shown.size() < 1000 && !find_invalid_utf8(shown), "a message shows little of it");
  if (ours.is_discarded()) return;
  const Json theirs = Json::parse(text, nullptr, false);
  fuzz::require(!theirs.is_discarded(), "what is read is JSON");
  fuzz::require(ours == theirs && ours.dump() == theirs.dump(), "it is read as it stands");
  const Json copy = ours;
  fuzz::require(parse_own_json<Json>(copy.dump(2)) == ours, "what is written is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  for (const JsonLimits& limits :
       {JsonLimits(), kLogLineJson, JsonLimits{.depth = 3, .values = 10, .keys_of_one = 2}}) {
    compare<nlohmann::json>(text, limits);
    compare<nlohmann::ordered_json>(text, limits);
  }
  fuzz::unless_refused([&] { parse_json(text, "a.json", "copy it again"); });
  fuzz::unless_refused([&] {
    std::vector<std::string> problems;
    const auto job = parse_job_json(text, "job.json", problems);
    fuzz::require(!job.is_discarded() && problems.size() <= kMostProblems, "a job is JSON");
    for (const std::string& problem : problems) fuzz::require(!find_invalid_utf8(problem), "problems are text");
  });
  return 0;
}
