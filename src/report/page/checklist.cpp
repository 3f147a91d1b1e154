#include "report/page/checklist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/metrics.h"
#include "base/text/plural.h"
#include "report/read/run_facts.h"

namespace brisk {

Check check(std::string what, bool good, std::string numbers) {
  return {std::move(what), std::move(numbers), good ? Check::Mark::good : Check::Mark::bad};
}

Check unknown_check(std::string what, std::string numbers) {
  return {std::move(what), std::move(numbers), Check::Mark::unknown};
}

std::string mark_text(Check::Mark mark) {
  switch (mark) {
    case Check::Mark::good: return "✓";
    case Check::Mark::bad: return "✗";
    case Check::Mark::unknown: return "–";
  }
  return "";
}

Html checklist_html(const std::vector<Check>& checks) {
  constexpr const char* kClasses[] = {"yes", "no", "open"};
  constexpr const char* kWords[] = {"yes", "no", "not known"};
  Html items;
  for (const Check& check : checks) {
    const auto kind = static_cast<size_t>(check.mark);
    items += html("<li class=\"{}\"><i role=\"img\" aria-label=\"{}\">{}</i><span>{}</span><b>{}</b></li>\n",
                  kClasses[kind], kWords[kind], mark_text(check.mark), check.what, check.numbers);
  }
  return html("<ul class=\"checks\">\n{}</ul>\n", items);
}

namespace {

Check epochs_check(const RunRecord& run) {
  const std::string what = "all epochs complete";
  const double per_epoch = run.totals.steps_per_epoch;
  std::string numbers = run.total_steps > 0
                            ? fmt::format("{} of {} steps", words::exact(run.step), words::exact(run.total_steps))
                            : fmt::format("{} steps", words::exact(run.step));
  if (per_epoch > 0 && std::isfinite(run.step)) numbers += fmt::format(", {:.2f} epochs", run.step / per_epoch);
  if (run.status == "finished") return check(what, true, numbers);
  numbers += ": " + run.status_text();
  if (run.status == "running" || run.status == "early stopping") return unknown_check(what, numbers);
  return check(what, false, numbers);
}

// The first logged loss against the mean of the last few, which single micro-batches do not decide.
Check loss_check(const RunRecord& run) {
  const std::string what = "the training loss fell";
  std::vector<double> losses;
  for (const StepPoint& point : run.steps) {
    if (const double loss = point.metric("loss"); std::isfinite(loss)) losses.push_back(loss);
  }
  if (losses.size() < 2) return unknown_check(what, "fewer than two logged steps");
  const auto last = static_cast<std::ptrdiff_t>(std::clamp<size_t>(losses.size() / 4, 1, 10));
  double sum = 0;
  std::for_each(losses.end() - last, losses.end(), [&](double loss) { sum += loss; });
  const double mean = sum / static_cast<double>(last);
  return check(what, mean < losses.front(),
               fmt::format("from {} to {}{}", words::loss(losses.front()), words::loss(mean),
                           last > 1 ? fmt::format(", the mean of the last {} logged", last) : ""));
}

std::vector<Check> sample_checks(const RunRecord& run) {
  struct Ends {
    const Sample *first, *last;
  };
  std::map<std::string, Ends> prompts;
  for (const Sample& sample : run.samples) {
    const auto [found, is_new] = prompts.try_emplace(sample.prompt, Ends{&sample, &sample});
    found->second.last = &sample;
  }
  std::erase_if(prompts, [](const auto& each) { return each.second.first == each.second.last; });
  if (prompts.empty()) return {};
  const auto changed = std::count_if(prompts.begin(), prompts.end(), [](const auto& each) {
    return each.second.first->text != each.second.last->text;
  });
  const auto step = [](int64_t value) { return words::exact(static_cast<double>(value)); };
  const Ends& ends = prompts.begin()->second;
  return {check("the samples changed", changed == std::ssize(prompts),
                fmt::format("{} of {}, step {} against step {}", changed, plural(std::ssize(prompts), "prompt"),
                            step(ends.first->step), step(ends.last->step)))};
}

Check memory_check(const RunRecord& run) {
  const std::string what = "nothing out of memory";
  const bool on_gpu = run.device.starts_with("cuda");
  const double all = run.processes.empty() || on_gpu ? kUnknown : run.processes.back().memory_bytes;
  if (!std::isfinite(run.peak_memory_bytes)) return unknown_check(what, "the peak is not known");
  std::string numbers =
      fmt::format("peak {}{}", words::bytes(run.peak_memory_bytes), on_gpu ? " on the GPU" : " of the process");
  if (all > 0) numbers += fmt::format(", {} in the machine", words::bytes(all));
  // A process that the system ended for its memory cannot say so: it is only known to have been killed.
  if (run.status == "unfinished") return unknown_check(what, numbers + "; the last process was killed or failed");
  return check(what, true, numbers);
}

Check divergence_check(const RunRecord& run) {
  const std::string what = "no divergence, no rollback";
  const bool diverged = run.status == "diverged";
  if (!diverged && std::isnan(run.rollbacks) && std::isnan(run.skipped_updates)) {
    return unknown_check(what, "the run does not tell");
  }
  const double rollbacks = std::isfinite(run.rollbacks) ? run.rollbacks : 0;
  const double skipped = std::isfinite(run.skipped_updates) ? run.skipped_updates : 0;
  return check(what, !diverged && rollbacks == 0,
               fmt::format("{}{} rollbacks, {} updates skipped", diverged ? run.status_text() + ", " : "",
                           words::exact(rollbacks), words::exact(skipped)));
}

Check quality_check(const RunRecord& run) {
  const std::string what = "a best model was chosen";
  const EvaluationPoint* best = run.best_evaluation();
  const Metric* metric = best != nullptr ? best->metrics.find(run.best_by) : nullptr;
  if (metric == nullptr) return unknown_check(what, "no evaluation");
  return check(what, std::isfinite(metric->value),
               fmt::format("validation {} {}{} at step {}", metric->title(), words::metric(*metric),
                           metric->has_interval() ? fmt::format(", 95 %: {}", metric->interval_text()) : "",
                           words::exact(best->step)));
}

}  // namespace

namespace {

// NaN, of those that tell nothing, is less than nothing.
double least_busy(const RunRecord& run) {
  double least = 1;
  for (const RunRecord::RankGpu& gpu : run.rank_gpus) {
    if (gpu.busy_share < least) least = gpu.busy_share;
  }
  return least;
}

// "rank 0: 94 % of the time, at most 33.0 GiB and 64 C; rank 1: ..."
std::string gpus_text(const RunRecord& run) {
  std::string text;
  for (const RunRecord::RankGpu& gpu : run.rank_gpus) {
    text += fmt::format("{}rank {:.0f}: {} of the time", text.empty() ? "" : "; ", gpu.rank,
                        words::percent(gpu.busy_share));
    if (std::isfinite(gpu.memory_used_bytes)) text += ", at most " + words::bytes(gpu.memory_used_bytes);
    if (std::isfinite(gpu.celsius))
      text += fmt::format("{}{:.0f} C", std::isfinite(gpu.memory_used_bytes) ? " and " : ", at most ", gpu.celsius);
  }
  return text;
}

}  // namespace

std::vector<Check> run_checks(const RunRecord& run) {
  if (run.is_imported()) return {};
  std::vector<Check> checks = {epochs_check(run), loss_check(run)};
  for (Check& samples : sample_checks(run)) checks.push_back(std::move(samples));
  checks.push_back(memory_check(run));
  checks.push_back(divergence_check(run));
  checks.push_back(quality_check(run));
  constexpr double kBusy = 0.8;
  if (run.rank_gpus.size() > 1) {
    checks.push_back(check("the GPUs of all ranks had work", least_busy(run) >= kBusy, gpus_text(run)));
  } else if (std::isfinite(run.gpu_busy_share)) {
    checks.push_back(check(
        "the GPU had work", run.gpu_busy_share >= kBusy,
        fmt::format("{}: {} of the time{}", run.device.empty() ? "GPU" : run.device, words::percent(run.gpu_busy_share),
                    std::isfinite(run.gpu_memory_used_bytes)
                        ? fmt::format(", at most {} of its memory used", words::bytes(run.gpu_memory_used_bytes))
                        : "")));
  }
  return checks;
}

}  // namespace brisk
