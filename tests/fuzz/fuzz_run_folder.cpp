// The files of a run folder, in the order of kNames and with a NUL between them, as `brisk report` and `brisk compare` read
// them.
#include <nlohmann/json.hpp>

#include "base/text/unicode.h"
#include "fuzz/fuzz_input.h"
#include "report/page/compare.h"
#include "report/page/report_page.h"
#include "support/scratch_folder.h"
#include "train/record/metrics_log.h"

using namespace brisk;

namespace {

constexpr const char* kNames[] = {"job.json",      "metrics.jsonl", "ledger.jsonl",
                                  "samples.jsonl", "summary.json",  "evaluation.json"};

bool has_controls(std::string_view text) {
  for (const char letter : text) {
    const bool control = static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
    if (control && letter != '\n' && letter != '\t') return true;
  }
  return find_invalid_utf8(text).has_value();
}

size_t count_of(std::string_view part, std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

void check_page(const std::string& page) {
  fuzz::require(!has_controls(page), "a page has no control characters");
  fuzz::require(count_of("<script", page) == 1 && count_of("<style", page) == 1, "all markup is ours");
  fuzz::require(count_of("<h1", page) == 1 && count_of("<img", page) == 0, "all markup is ours");
  fuzz::require(page.find("nan,") == std::string::npos && page.find(",nan") == std::string::npos, "points are numbers");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::ScratchFolder folder;
  std::string_view rest = fuzz::text_of(data, size);
  for (const char* name : kNames) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    test::put_contents(folder / name, std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  fuzz::unless_refused([&] {
    const RunRecord run = read_run(folder.path());
    for (const std::string& note : run.notes) fuzz::require(note.size() < 100'000, "a note is short");
    check_page(report_page(run));
    fuzz::require(nlohmann::json::accept(report_json(run)), "the figures are JSON");
    RunRecord other = run;
    other.name = "other";
    other.task = "language_model";
    other.settings.clear();
    for (const Comparison& comparison :
         {compare_runs({run, other}), compare_runs({other, run, run, run, run, run, run})}) {
      check_page(comparison_page(comparison));
      fuzz::require(!has_controls(comparison_text(comparison)), "a table has no control characters");
      fuzz::require(nlohmann::json::accept(comparison_json(comparison)), "the figures are JSON");
    }
  });
  fuzz::unless_refused([&] {
    RunSummary summary;
    recall_metrics(folder / "metrics.jsonl", Metrics(), 20, summary);
    fuzz::require(nlohmann::json::accept(summary_to_json_text(summary)), "a summary is JSON");
    summary_says(folder / "summary.json", 20, "finished");
  });
  return 0;
}
