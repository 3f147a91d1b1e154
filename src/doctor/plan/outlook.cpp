#include "doctor/plan/outlook.h"

#include <algorithm>
#include <cmath>

#include "doctor/ladder/course.h"
#include "doctor/plan/job_size.h"
#include "doctor/plan/rank_model.h"
#include "train/run/plan/plan_run_length.h"

namespace brisk {

namespace {

// Evaluations and checkpoints of an epoch.
CourseReadings course_in(const Job& job, const JobSize& size, double step_seconds) {
  ReadyFacts facts;
  facts.steps_per_epoch = size.steps_per_epoch;
  facts.total_steps = size.total_steps > 0
                          ? size.total_steps
                          : std::max<int64_t>(1, static_cast<int64_t>(size.box_seconds / std::max(1e-6, step_seconds)));
  facts.tokens_per_epoch = size.tokens_per_epoch;
  facts.validation_sequences = static_cast<int64_t>(size.validation_sequences);
  facts.validation_rows = static_cast<int64_t>(size.validation_tokens);
  CourseReadings course = course_of(job, facts, step_seconds);
  // Each evaluation may be the best so far, which is saved.
  if (job.training.load_best_model_at_end)
    course.saves_per_epoch = std::max(course.saves_per_epoch, course.evaluations_per_epoch);
  return course;
}

}  // namespace

Outlook outlook_of(const Job& job, const JobSize& size, const StepTimes* times, int64_t memory_available) {
  Outlook outlook{.parameters = size.parameters,
                  .flop_per_token = size.flop_per_token,
                  .memory_bytes = size.memory.total(),
                  .fits = fits_into(size.memory, memory_available),
                  .disk_bytes = size.disk.total()};
  if (times == nullptr) return outlook;
  const auto steps = static_cast<double>(size.steps_per_epoch);
  outlook.step_seconds = times->step_seconds(size.tokens_per_step());
  outlook.tokens_per_second = size.tokens_per_step() / outlook.step_seconds;
  CourseReadings course = course_in(job, size, outlook.step_seconds);
  course.evaluation_seconds = times->evaluation * size.validation_tokens;
  course.save_seconds = times->save;
  outlook.epoch_seconds = steps * outlook.step_seconds + course.seconds_per_epoch();
  outlook.run_seconds = size.total_steps > 0
                            ? times->start_up + static_cast<double>(size.total_steps) / steps * outlook.epoch_seconds
                            : size.box_seconds;
  return outlook;
}

Outlook on_ranks(const RankNetwork& network, const Outlook& whole, const JobSize& size, const JobSize& part,
                 const StepTimes& times_of_part) {
  Outlook outlook = whole;
  const bool is_known = network.bytes_per_second > 0 || !network.sum.empty();
  const RankWork work = work_of_rank(part, times_of_part);
  const RankStep step = step_on_ranks(work, network);
  const auto steps = static_cast<double>(size.steps_per_epoch);
  outlook.ranks = network.size;
  outlook.part_seconds = times_of_part.step_seconds(part.tokens_per_step());
  outlook.exposed_seconds = is_known ? step.exposed() : -1;
  outlook.step_seconds = step.compute + step.update + (is_known ? step.exposed() : 0);
  outlook.tokens_per_second = size.tokens_per_step() / outlook.step_seconds;
  const double saved = steps * (whole.step_seconds - outlook.step_seconds);  // evaluations and checkpoints stay
  outlook.epoch_seconds = whole.epoch_seconds - saved;
  if (size.total_steps > 0)
    outlook.run_seconds = whole.run_seconds - saved * static_cast<double>(size.total_steps) / steps;
  outlook.memory_bytes = part.memory.total();
  outlook.network_bytes_per_step = bytes_sent(work, network.size);
  return outlook;
}

JobSize with_more_data(const Job& job, JobSize size, double factor) {
  size.sequences_per_epoch *= factor;
  size.tokens_per_epoch *= factor;
  if (job.data.validation.empty()) {
    size.validation_sequences *= factor;
    size.validation_tokens *= factor;
  }
  size.steps_per_epoch = static_cast<int64_t>(std::ceil(size.sequences_per_epoch / size.sequences_per_step));
  if (const auto steps = steps_of_run(job.training, size.steps_per_epoch, size.tokens_per_step()))
    size.total_steps = *steps;
  size.disk.cache = static_cast<int64_t>(factor * static_cast<double>(size.disk.cache));
  return size;
}

}  // namespace brisk
