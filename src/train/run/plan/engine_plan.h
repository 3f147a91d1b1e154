// The engine that a job asks for, before anything is measured or allocated: its device, its model, its micro-batches.
//
//   const DeviceChoice place = training_device(task, job);
//   const EnginePlan plan = plan_engine(task, job, *place.device, {length_figures(sequences)});
//   refuse_what_cannot_fit(plan.options);
#pragma once

#include <optional>
#include <vector>

#include "data/batch/padding.h"
#include "infer/device_choice.h"
#include "infer/precision.h"
#include "infer/tuned_settings.h"
#include "job/job.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"
#include "train/task/task.h"

namespace brisk {

// The job's, or the CPU where the task says that only it will do. UserError where it cannot be.
DeviceChoice training_device(const Task& task, const Job& job);

// Of each row set: how long the sequences are that are computed, with the padding that the job asks for, which `padding`
// is set to.
std::vector<LengthFigures> computed_lengths(const TrainingOptions& training, const TaskData& data,
                                            const BatchLayout& layout, Padding& padding);

struct EnginePlan {
  EngineOptions options;
  std::optional<PrecisionChoice> precision;  // none: that of the run that is resumed
};

// All that decides the memory of training, and who evaluates: the task must outlive an engine that is made of it.
// `lengths`: of each row set with rows of its own, as far as they are known. On a GPU the micro-batch is halved until it
// fits, unless the job says how large it is. The number formats are those of `recalled`, the tuned settings of the run
// that is resumed, or else what the job gets here; on a CPU that may take a few products to be timed, and some megabytes.
EnginePlan plan_engine(const Task& task, const Job& job, Device& device, const std::vector<LengthFigures>& lengths,
                       const TunedSettings* recalled = nullptr);

}  // namespace brisk
