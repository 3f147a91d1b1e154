#include "doctor/verify.h"

#include <cmath>
#include <limits>

#include "base/child_process.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "report/read/run_record.h"

namespace brisk {

namespace {

Verification::Side train_to_the_end(Job job, const std::string& name, const std::string& folder) {
  job.output = folder + "/to-the-end-" + name;  // the ladder's runs are there, too
  const std::string path = job.output + ".json";
  write_file_atomically(path, job_to_json_text(job));
  say("training the {} job to its end", name);
  ChildProcess child({"train", path}, job.output + ".txt");
  child.wait(std::numeric_limits<int32_t>::max(), [] { return Runtime::current().cancelled(); });
  throw_if_cancelled();
  if (!child.succeeded()) user_error("the {} job ended early, {}: {}", name, child.how_it_ended(), child.last_words());
  const RunRecord run = read_run(job.output);
  Verification::Side side{.run = name,
                          .seconds = run.seconds,
                          .seconds_per_epoch = run.seconds_per_epoch,
                          .tokens_per_second = run.tokens_per_second};
  if (const EvaluationPoint* best = run.best_evaluation()) {
    const Metric* metric = best->metrics.find(run.best_by);
    if (metric == nullptr) return side;
    side.metric = metric->name;
    side.value = side.low = side.high = metric->value;
    if (metric->has_interval()) {
      side.low = metric->low;
      side.high = metric->high;
    }
  }
  return side;
}

}  // namespace

Verification verify(const Diagnosis& diagnosis, const std::string& folder) {
  constexpr double kOfALoss = 0.01;  // relative, where there is no interval
  Verification both;
  both.before = train_to_the_end(diagnosis.written, "written", folder);
  both.after = train_to_the_end(diagnosis.tuned, "tuned", folder);
  const auto &before = both.before, &after = both.after;
  if (before.metric.empty()) {
    both.verdict = "there is no validation data: only the times can be compared";
    return both;
  }
  const bool has_interval = before.high > before.low;
  both.same_quality = has_interval ? after.high >= before.low && before.high >= after.low
                                   : std::abs(after.value - before.value) <= kOfALoss * std::abs(before.value);
  both.verdict = fmt::format("{} {:.4f} before and {:.4f} after: {}", before.metric, before.value, after.value,
                             both.same_quality ? has_interval ? "the 95 % intervals overlap" : "within 1 %"
                             : has_interval    ? "the 95 % intervals do not overlap"
                                               : "more than 1 % apart");
  return both;
}

}  // namespace brisk
