#include "doctor/judge/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/judge/rule_groups.h"

namespace brisk {

namespace {

constexpr double kWorthFinding = 1.02;
constexpr size_t kLineLength = 140;

struct RuleGroup {
  std::string_view title;
  std::span<const Rule> rules;
};

std::vector<RuleGroup> rule_groups() {
  return {{"Does it learn?", rules_of_result()},
          {"The batch and its lengths", rules_of_batch()},
          {"The model and its arithmetic", rules_of_model()},
          {"Between the steps", rules_of_course()},
          {"The machine", rules_of_machine()},
          {"Several processes", rules_of_ranks()},
          {"On a GPU", rules_of_gpu()}};
}

bool is_worth_it(const Finding& finding) {
  return finding.is_quality || finding.shown_without_gain || finding.predicted_gain >= kWorthFinding;
}

// A training that does not learn comes before its speed. A GPU that is idle comes before all that is measured on the CPU;
// its gain cannot be predicted there.
int rank_of(const Finding& finding) {
  if (finding.id == "not_learning") return 0;
  if (finding.id == "idle_gpu" && finding.fix && finding.fix->is_setting()) return 1;
  // What cannot be predicted and is plainly wrong goes before small gains.
  constexpr double kSmallGain = 1.1;
  if (finding.shown_without_gain && finding.fix && finding.fix->is_setting()) return 2;
  return finding.is_quality ? 4 : finding.predicted_gain >= kSmallGain ? 2 : 3;
}

// An item of a list, in lines of at most 140 characters.
std::string list_item(std::string_view start, std::string_view text) {
  std::string item, line = fmt::format("- {}:", start);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (line.size() + word.size() >= kLineLength) {
      item += line + "\n";
      line = " ";
    }
    line += fmt::format(" {}", word);
  }
  return item + line + ".\n";
}

constexpr std::string_view kIntroduction =
    R"(# Troubleshooting: training is slow, or wrong

<!-- Generated from src/doctor/judge by scripts/make_troubleshooting.sh. -->

`brisk doctor` finds the reason by measuring. It runs your job for a few minutes, and leaves the job, its run directory and its data as they
are:

```sh
brisk doctor job.json                                      # where the time goes, what is wrong, what each fix gains here
brisk doctor job.json --apply fast.json                    # and writes the faster job
brisk train fast.json
```

Its findings are named as on this page. Each says what was measured, what the fix would gain by Amdahl on the measured share of the time, and
what it does to the result: *same bits*, *same maths within rounding*, or *changes the maths*. A gain below 2 % is no finding, and neither is
what could not be measured. Factors are never multiplied: they overlap.
)";

constexpr std::string_view kWithoutTheDoctor = R"(
## Before the first step

### Out of memory at the start

brisk plans its memory before it allocates or writes anything, and refuses a job that does not fit: *this job needs 5.2 GiB of memory and 3.1 GiB
are available*. Read the two tables below that line:

- The first says what takes the memory. *Weights*, *gradients* and *optimizer* belong to the model, whatever the batch is; *activations* and
  *loss* belong to the micro-batch.
- The second has a line for each setting that would free some, what would be needed then, and whether it fits. Take the first that fits: a
  smaller `training.micro_batch_tokens` changes no result and costs little speed; `training.gradient_checkpointing: 1` changes no result and
  costs 20 to 33 % of the time; a shorter `training.max_length` changes what is learned.

A smaller `training.batch_size` does not help by itself: memory is taken by micro-batches, and a batch is divided into them anyway.

### The process is killed, or memory runs out on the way

*Killed* without a message of brisk is the system's out-of-memory killer (exit code 137): another process took the memory that was there at the
start, or the container's limit is below what the machine shows. `brisk machine` says how much this process may use. The run's folder is whole
at any moment: `brisk train RUN --resume` continues from the last checkpoint.

### There is a GPU and brisk does not see it

`brisk machine` says which GPUs there are and, where none can be used, why:

- *no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES?)*: the variable is empty or names a GPU that does not exist. `unset CUDA_VISIBLE_DEVICES`, or
  set it to `0`. The GPUs that it leaves are numbered from 0: `cuda:1` is the second of those that are visible.
- *this brisk was built without CUDA*: [installing.md](installing.md) says how to build it with CUDA.

### Exit codes

| code | meaning |
|---|---|
| 0 | it did what was asked |
| 1 | an internal error of brisk; please report it |
| 2 | the job, the data, the machine or the disk does not allow it; one message says what was found, what was expected, and the fix |
| 130 | interrupted (Ctrl-C, SIGTERM); a run has saved a checkpoint and said how to resume |
| 137 | killed from outside: `kill -9`, or the system's out-of-memory killer |
)";

}  // namespace

std::span<const Rule> rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    for (const RuleGroup& group : rule_groups()) list.insert(list.end(), group.rules.begin(), group.rules.end());
    return list;
  }();
  return all;
}

std::vector<Finding> judge(const Readings& readings) {
  std::vector<Finding> findings;
  for (const Rule& rule : rules()) {
    std::optional<Finding> finding = rule.look(readings);
    if (finding && is_worth_it(*finding)) findings.push_back(std::move(*finding));
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const int first = rank_of(a), second = rank_of(b);
    return first != second ? first < second : a.predicted_gain > b.predicted_gain;
  });
  return findings;
}

std::string troubleshooting_markdown() {
  std::string text(kIntroduction);
  text += "\n| what you see | finding |\n|---|---|\n";
  for (const Rule& rule : rules()) text += fmt::format("| {} | [`{}`](#{}) |\n", rule.symptom, rule.id, rule.id);
  for (const auto& [title, group] : rule_groups()) {
    text += fmt::format("\n## {}\n", title);
    for (const Rule& rule : group)
      text += fmt::format("\n### `{}`\n\n", rule.id) + list_item("You see", rule.symptom) +
              list_item("It means", rule.meaning) + list_item("The fix", rule.remedy);
  }
  return text + std::string(kWithoutTheDoctor);
}

}  // namespace brisk
