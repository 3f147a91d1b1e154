#include "doctor/doctor.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal/terminal.h"
#include "doctor/ladder/climb.h"
#include "doctor/ladder/variants.h"
#include "doctor/measure/machine_readings.h"
#include "doctor/measure/measured_run.h"
#include "doctor/measure/scratch.h"
#include "doctor/verify.h"

namespace brisk {

namespace {

constexpr double kLeastBudget = 5;  // seconds: the machine is measured and a job started in no less

void check_budget(double seconds) {
  if (seconds < kLeastBudget) {
    user_error("a budget of {} is too short to start a training and measure anything; give at least --budget {:.0f}s",
               format_duration(seconds), 2 * kLeastBudget);
  }
}

void check_tries(const Job& job, const std::vector<std::string>& tries) {
  for (const std::string& setting : tries) {
    const size_t equals = setting.find('=');
    try {
      with_setting(job, setting.substr(0, equals), setting.substr(equals + 1));
    } catch (const UserError& error) {
      std::string_view what = error.what();
      if (what.starts_with("--set ")) what.remove_prefix(6);  // as such it was read
      user_error("--try {}", what);
    }
  }
}

}  // namespace

Diagnosis diagnose(const Job& job, const DoctorOptions& options) {
  check_budget(options.budget_seconds);
  check_tries(job, options.tries);
  const int64_t start = kSystemClock.nanoseconds();
  Diagnosis diagnosis{.job_name = job.name,
                      .job_path = options.job_path,
                      .naive = options.naive,
                      .settings = options.settings,
                      .budget_seconds = options.budget_seconds,
                      .written = job,
                      .tuned = job};
  const ScratchFolder scratch(run_directory_of(job));
  Climber climber(options, scratch, diagnosis);
  try {
    diagnosis.before.machine = measure_machine(job);
    climber.look();
    climber.climb();
  } catch (const Cancelled&) {
    if (diagnosis.ladder.empty()) throw;
    diagnosis.interrupted = true;
  } catch (const RunFailed& failure) {
    user_error("{}: a run of it ended early: {}", options.job_path, failure.what());
  }
  try {
    climber.finish();
  } catch (const Cancelled&) {
    diagnosis.interrupted = true;
  } catch (const RunFailed& failure) {  // the ladder stands
    diagnosis.notes.push_back(fmt::format("The last rung ended early: {}", failure.what()));
  }
  for (const Rung& rung : diagnosis.ladder) {
    if (rung.kept && rung.fix.is_setting()) diagnosis.tuned = with_fix(diagnosis.tuned, rung.fix);
  }
  try {
    if (options.verify && !diagnosis.interrupted) diagnosis.verification = verify(diagnosis, scratch.path());
  } catch (const Cancelled&) {
    diagnosis.interrupted = true;
  }
  diagnosis.seconds = kSystemClock.seconds_since(start);
  return diagnosis;
}

}  // namespace brisk
