#include "train/run/plan/engine_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "infer/optimizer_options.h"
#include "infer/precision.h"
#include "train/run/plan/resource_checks.h"

namespace brisk {

DeviceChoice training_device(const Task& task, const Job& job) {
  const std::string why = task.needs_cpu(job);
  if (why.empty()) return choose_device(job.device, "device");
  if (job.device != "auto" && job.device != "cpu") user_error("device \"{}\": {}; use \"cpu\"", job.device, why);
  const bool surprising = job.device == "auto" && built_with_cuda();
  return {&cpu_device(), "cpu", surprising ? fmt::format("cpu ({})", why) : ""};
}

std::vector<LengthFigures> computed_lengths(const TrainingOptions& training, const TaskData& data,
                                            const BatchLayout& layout, Padding& padding) {
  const bool to_max_length = training.padding == "max_length";
  if (training.padding == "longest") padding.to = Padding::To::longest;
  if (to_max_length) padding.to = Padding::To::lengths;
  const int texts = layout.rows_of_sequence > 1 ? 1 : 0;  // the row set: that of images has as many rows for each
  std::vector<LengthFigures> lengths;
  for (int set = 0; set < data.train->sets(); ++set) {
    LengthFigures& figures = lengths.emplace_back(length_figures(*data.train, data.sources, set));
    figures.longest = std::max<int64_t>({1, figures.longest, data.validation->longest(set)});
    if (to_max_length && set == texts) figures.longest = std::max(figures.longest, training.max_length);
    if (to_max_length) padding.lengths.push_back(figures.longest);
    if (padding.any()) figures = {figures.longest, static_cast<double>(figures.longest), 0};  // at most
  }
  return lengths;
}

EnginePlan plan_engine(const Task& task, const Job& job, Device& device, const std::vector<LengthFigures>& lengths,
                       const TunedSettings* recalled) {
  const TrainingOptions& training = job.training;
  EnginePlan plan;
  EngineOptions& options = plan.options;
  options.device = &device;
  options.model = task.model_config(job);
  options.layout = task.batch_layout(job);
  options.make_evaluator = [&task](const EvaluatorParts& parts) { return task.make_evaluator(parts); };
  options.checkpoint_every = training.gradient_checkpointing;
  options.muon = muon_options(training);
  options.master_weights = training.master_weights;
  std::vector<int64_t> longest;
  for (const LengthFigures& set : lengths) longest.push_back(set.longest);
  const int64_t asked = training.micro_batch_tokens, least = options.layout.least_rows(longest);
  if (asked > 0 && asked < least && least > longest[0]) {
    user_error(
        "training.micro_batch_tokens {} has too little room for the longest sequence in each row set: use {} or more",
        asked, least);
  }
  // A GPU has little to do for the coarsest grid of a single image, and for its text.
  constexpr int64_t kImagesOnGpu = 8;
  const int64_t images = device.is_cuda() && options.layout.rows_of_sequence > 1 ? kImagesOnGpu : 1;
  int64_t rows = micro_batch_rows(asked, std::max(usual_micro_batch_tokens(&device), images * longest[0]),
                                  training.batch_size * training.gradient_accumulation_steps, lengths[0]);
  rows = std::max(rows, least);
  options.capacity = options.layout.capacity(rows, longest[0]);
  if (recalled != nullptr) {
    options.compute_type = recalled->compute_type;
    options.products = device.is_cuda() ? recalled->products : GemmFormat::own;
  } else {
    plan.precision = choose_precision(training.precision, model_widths(options.model), device);
    options.compute_type = plan.precision->compute_type;
    options.products = plan.precision->products;
  }
  if (!device.is_cuda()) return plan;
  // A GPU is the faster the more it has to do at once.
  while (asked == 0 && rows > least && !fits_in_memory(options)) {
    rows = std::max(least, rows / 2);
    options.capacity = options.layout.capacity(rows, longest[0]);
  }
  return plan;
}

}  // namespace brisk
