// What has gone wrong with a run that ended, a sentence each with what to do: for the screen, summary.json and the
// report. And the advice for one that diverged.
//
//   for (const std::string& warning : health_warnings(plan, run.summary, last_scores)) warn("{}", warning);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "infer/answer/class_scores.h"
#include "train/run/setup.h"

namespace brisk {

// Of a run with model.reference, whatever became of it; a last evaluation that is not finite, a loss above that of a guess (ln V), all texts given one class. `scores`: of
// the last evaluation of a classifier. Nothing of a run that is well.
std::vector<std::string> health_warnings(const RunPlan& plan, const RunSummary& summary,
                                         const std::optional<ClassScores>& scores);

// "lower training.learning_rate (now 0.004) and training.muon_learning_rate (now 0.01), or ...": of the keys that have
// a part in this job, those that would help.
std::string stability_advice(const Job& job);
// For a model that is no better than a guess: "raise training.learning_rate (now 2e-05; 0.001 is the default of such a
// job), or train for longer".
std::string learning_advice(const Job& job);

}  // namespace brisk
