#include "doctor/ladder/climb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "doctor/judge/rules.h"
#include "doctor/ladder/course.h"
#include "doctor/ladder/statistics.h"
#include "doctor/measure/gradient_file.h"
#include "report/read/run_record.h"

namespace brisk {

namespace {

constexpr std::string_view kAskedFor = "asked_for";  // in place of a finding's id
constexpr std::string_view kSeveralProcesses = "several_processes";
constexpr int kLeastPairs = 6;  // with which the interval has 95 %
constexpr int kMostPairs = 15;
constexpr double kLongestStep = 2;  // seconds; longer ones are measured on fewer sequences

// What rounding may change in a step's gradient, relative to its norm.
double allowed_difference(const std::string& precision, const std::string& other) {
  constexpr double kRoundingOfSums = 1e-3;
  double allowed = kRoundingOfSums;
  for (const std::string& each : {precision, other}) {
    if (each == "bf16") allowed = std::max(allowed, precision == other ? 1e-2 : 6e-2);
    if (each == "fp16" || each == "tf32") allowed = std::max(allowed, precision == other ? 5e-3 : 2e-2);
    if (each == "fp8") allowed = std::max(allowed, precision == other ? 5e-2 : 0.3);
  }
  return allowed;
}

// Of what a run said of its end: tables follow.
std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

// "padding: none" of training.padding = "none"
std::string step_name(const Fix& fix) {
  if (fix.processes > 0) return plural(fix.processes, "process", "processes");
  const size_t dot = fix.key.rfind('.');
  std::string value = fix.value;
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
  return fmt::format("{}: {}", dot == std::string::npos ? fix.key : fix.key.substr(dot + 1), value);
}

// What a watched stretch says of the GPU.
void read_gpu(const Block& watched, Readings& readings) {
  GpuReadings& gpu = readings.stretch.gpu;
  if (watched.steps == 0 || watched.seconds <= 0 || watched.gpu_busy_seconds < 0) return;
  gpu.idle_share = std::clamp(1 - watched.gpu_busy_seconds / watched.seconds, 0.0, 1.0);
  const double of_ledger = readings.stretch.ledger.seconds();
  if (of_ledger > 0) gpu.copy_share = readings.stretch.ledger.seconds(Phase::copy) / of_ledger;
  gpu.launch_seconds = readings.machine.gpu_launch_seconds;
  if (watched.gpu_kernels <= 0 || gpu.launch_seconds <= 0) return;
  const auto kernels = static_cast<double>(watched.gpu_kernels);
  gpu.kernels_per_step = kernels / static_cast<double>(watched.steps);
  gpu.mean_kernel_seconds = std::max(1e-9, watched.gpu_busy_seconds / kernels - gpu.launch_seconds);
}

HistoryReadings history_of(const std::string& run) {
  HistoryReadings history;
  try {
    const RunRecord record = read_run(run);
    for (const StepPoint& point : record.steps) {
      const double loss = point.metric("loss");
      if (std::isfinite(loss)) history.training.emplace_back(point.step, loss);
    }
    for (const EvaluationPoint& point : record.evaluations) {
      const double loss = point.metrics.value("loss");
      if (std::isfinite(loss)) history.validation.emplace_back(point.step, loss);
    }
    history.steps_per_epoch = std::isfinite(record.totals.steps_per_epoch) ? record.totals.steps_per_epoch : 0;
    history.best_by = record.best_by;
    for (const RankTime& rank : record.ranks) {
      if (!std::isfinite(rank.communication_seconds)) continue;
      history.rank_communication.push_back(rank.communication_seconds);
      if (std::isfinite(rank.work_seconds)) history.rank_work.push_back(rank.work_seconds);
      history.rank_hosts.push_back(rank.host);
    }
    history.rank_seconds = std::isfinite(record.ranks_training_seconds) ? record.ranks_training_seconds : 0;
  } catch (const UserError&) {  // there is no such run, or nothing can be read of it
  }
  return history;
}

}  // namespace

Climber::Climber(const DoctorOptions& options, const ScratchFolder& scratch, Diagnosis& diagnosis)
    : options_(options), scratch_(scratch), diagnosis_(diagnosis) {}

double Climber::left() const { return options_.budget_seconds - kSystemClock.seconds_since(started_); }

void Climber::tell(const std::string& what) const {
  say("[{} of {}] {}", format_duration(kSystemClock.seconds_since(started_)), format_duration(options_.budget_seconds),
      what);
}

// A few hundred of them fit into a budget.
double Climber::block_seconds() const { return std::clamp(options_.budget_seconds / 150, 0.25, 1.5); }

double Climber::rung_seconds() const {
  constexpr double kOtherStart = 1.3;  // it may take longer than the last one's
  const double block = std::max(block_seconds(), current_->step_seconds());
  return kOtherStart * current_->start_seconds() + 2 * kLeastPairs * block;
}

std::unique_ptr<Subject> Climber::subject_of(const Job& job, bool keeps_gradient, int64_t processes) {
  return std::make_unique<Subject>(job, length_, fmt::format("{}/{}", scratch_.path(), ++folders_), keeps_gradient,
                                   processes);
}

// What the job as it is written is about to do; a job that cannot be trained is refused here, in its own words.
void Climber::plan_measuring(const Job& first) {
  tell("reading the job and its data");
  try {
    MeasuredRun run(diagnosis_.written, fmt::format("{}/written", scratch_.path()));
    facts_ = run.start();
  } catch (const RunFailed& failure) {
    if (failure.refused) user_error("{}", failure.what());
    throw;
  }
  length_.warmup_steps = warmup_steps_of(diagnosis_.written.training, facts_.total_steps);
  length_.micro_batch_tokens = facts_.micro_batch_tokens;
  // Padding, and products that are far from the peak: what a step takes at most, about.
  const double mean = facts_.tokens_per_epoch / static_cast<double>(std::max<int64_t>(1, facts_.steps_per_epoch)) /
                      static_cast<double>(facts_.sequences_per_step);
  const double padded =
      first.training.padding == "none" ? 1 : static_cast<double>(first.training.max_length) / std::max(1.0, mean);
  constexpr double kReached = 0.4;
  const double step = facts_.gigaflop_per_step * padded / (kReached * std::max(1.0, facts_.peak_gflops));
  if (step > kLongestStep && facts_.sequences_per_step > 1) {
    length_.sequences_per_step = std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(facts_.sequences_per_step) * kLongestStep / step));
    diagnosis_.notes.push_back(fmt::format(
        "A step of the job has {} and would take seconds: steps of {} were measured, and the update counted as often as "
        "the job makes it.",
        plural(facts_.sequences_per_step, "sequence"), length_.sequences_per_step));
  }
}

void Climber::measure_batch_curve(const Job& first) {
  const int64_t most_sequences = facts_.on_gpu ? 4096 : 256;
  const double rows = facts_.on_gpu ? 65536 : 8192;
  constexpr double kLeastBudget = 15, kShareOfBudget = 0.05;
  if (options_.budget_seconds < kLeastBudget) return;
  Job wide = first;
  const double mean = facts_.tokens_per_epoch /
                      static_cast<double>(std::max<int64_t>(1, facts_.steps_per_epoch * facts_.sequences_per_step));
  wide.training.padding = "none";
  wide.training.micro_batch_tokens = 0;
  wide.training.measure_micro_batch = false;
  wide.training.gradient_accumulation_steps = 1;
  wide.training.batch_size =
      std::max(wide.training.batch_size, std::min(static_cast<int64_t>(rows / std::max(1.0, mean)), most_sequences));
  tell("speed by the number of sequences in a micro-batch");
  try {
    MeasuringLength whole = length_;
    whole.sequences_per_step = 0;
    MeasuredRun run(for_measuring(wide, whole), fmt::format("{}/curve", scratch_.path()));
    run.start();
    for (const BatchSpeed& point : run.batch_curve(most_sequences, kShareOfBudget * options_.budget_seconds)) {
      batch_curve_.push_back({.x = static_cast<double>(point.sequences), .tokens_per_second = point.tokens_per_second});
    }
  } catch (const RunFailed& failure) {
    diagnosis_.notes.push_back(fmt::format("The speed by micro-batch could not be measured: {}", failure.what()));
  }
}

// Speeds of the same steps by 2, 4, ... processes that share the cores, as long as they grow; a stretch of one between them.
void Climber::measure_process_curve() {
  constexpr double kLeastBudget = 40, kShareOfBudget = 0.1;
  constexpr int kBlocks = 3;
  const int64_t cores = diagnosis_.before.machine.cores;
  const bool asks_for_threads = diagnosis_.written.training.threads > 0;
  const int64_t parts = diagnosis_.written.training.logical_ranks;
  if (facts_.on_gpu || asks_for_threads || options_.naive || options_.budget_seconds < kLeastBudget) return;
  const auto speed = [](const Subject& subject) { return 1 / subject.seconds_per_token(); };
  const double until = left() - kShareOfBudget * options_.budget_seconds;
  double best = speed(*current_);
  for (int64_t processes = 2; processes <= cores && left() > until; processes *= 2) {
    const bool divides = cores % processes == 0 && (parts == 0 || parts % processes == 0);
    if (!divides || facts_.sequences_per_step < processes) break;
    if ((processes + 1) * current_->facts().planned_bytes >= memory_available()) break;
    tell(fmt::format("the same steps by {} processes", processes));
    try {
      const std::unique_ptr<Subject> several = subject_of(current_->job(), false, processes);
      several->start();
      std::vector<double> ratios;
      for (int block = 0; block < kBlocks; ++block) {
        const double alone = current_->seconds_per_token(current_->measure(block_seconds()));
        ratios.push_back(alone / several->seconds_per_token(several->measure(block_seconds())));
      }
      if (process_curve_.empty()) process_curve_.push_back({.x = 1, .tokens_per_second = speed(*current_)});
      const double reached = process_curve_.front().tokens_per_second * median(ratios);
      process_curve_.push_back({.x = static_cast<double>(processes), .tokens_per_second = reached});
      if (reached < best) break;
      best = reached;
    } catch (const RunFailed& failure) {
      diagnosis_.notes.push_back(
          fmt::format("{} processes could not be measured: {}", processes, first_line(failure.what())));
      break;
    }
  }
}

void Climber::measure_course() {
  constexpr double kSeconds = 1.5;
  course_ = course_of(current_->job(), facts_, current_->step_seconds());
  MeasuredRun& run = current_->run();
  if (facts_.validation_sequences > 0) {
    Timed timed = run.evaluate(8);  // makes the evaluator
    timed = run.evaluate(8);
    const double each = timed.seconds / static_cast<double>(std::max<int64_t>(1, timed.count));
    timed = run.evaluate(std::max<int64_t>(8, static_cast<int64_t>(std::min(1e9, kSeconds / std::max(each, 1e-9)))));
    course_.evaluation_seconds =
        timed.seconds * static_cast<double>(timed.of) / static_cast<double>(std::max<int64_t>(1, timed.count));
  }
  const Timed saved = run.save();
  save_write_seconds_ = saved.write_seconds;
  course_.save_seconds = saved.seconds;
}

double Climber::course_per_token() const {
  return course_.seconds_per_epoch() / std::max(1.0, facts_.tokens_per_epoch);
}

double Climber::cost_per_token(const Subject& subject) const {
  return subject.seconds_per_token() + course_per_token();
}

Readings Climber::readings_of(Subject& subject) {
  Readings readings = subject.run().readings();
  readings.job = subject.job();
  const std::map<std::string, double> own_peak = readings.machine.peak_gflops;
  readings.machine = diagnosis_.before.machine;
  for (const auto& [precision, gflops] : own_peak) readings.machine.peak_gflops.try_emplace(precision, gflops);
  const Block all = subject.total();
  StretchReadings& stretch = readings.stretch;
  stretch.steps = all.steps;
  stretch.micro_batches = all.micro_batches;
  stretch.sequences = all.sequences;
  stretch.tokens = all.tokens;
  stretch.rows = all.rows;
  stretch.targets = all.targets;
  stretch.seconds = all.seconds;
  stretch.median_step_seconds = median(all.step_seconds);
  stretch.ledger = all.ledger;
  stretch.forwards_per_step = all.forward_passes < 0 || all.micro_batches == 0
                                  ? -1
                                  : static_cast<double>(all.forward_passes) / static_cast<double>(all.micro_batches);
  stretch.user_seconds = all.counters.user_seconds;
  stretch.system_seconds = all.counters.system_seconds;
  stretch.waiting_seconds = all.counters.waiting_seconds;
  stretch.other_seconds = all.counters.other_seconds;
  stretch.minor_faults = all.counters.minor_faults;
  stretch.major_faults = all.counters.major_faults;
  stretch.throttled_seconds = all.counters.throttled_seconds;
  stretch.disk_wait_seconds = all.counters.disk_wait_seconds;
  stretch.shortened = length_.sequences_per_step > 0;
  if (facts_.on_gpu) read_gpu(subject.watched_block(block_seconds()), readings);
  readings.data.padded_rows = all.tokens > 0 ? readings.data.tokens * all.rows / all.tokens : -1;
  VitalSigns& signs = readings.vital_signs;
  signs.forwards_per_step = stretch.forwards_per_step;
  signs.target_share = all.tokens > 0 ? all.targets / all.tokens : -1;
  const std::vector<double>& losses = all.step_losses;
  if (losses.size() >= 4) {
    const auto half = static_cast<std::ptrdiff_t>(losses.size() / 2);
    signs.last_loss = median({losses.begin() + half, losses.end()});
    signs.loss_falling = signs.last_loss < signs.first_loss;
  }
  readings.course = course_;
  readings.batch_curve = batch_curve_;
  readings.process_curve = process_curve_;
  readings.history = history_;
  return readings;
}

const Rung& Climber::last_kept() const {
  const auto& ladder = diagnosis_.ladder;
  return *std::find_if(ladder.rbegin(), ladder.rend(), [](const Rung& rung) { return rung.kept; });
}

void Climber::fill(Rung& rung, Subject& subject) {
  // Of the first rung as it was measured; of the others by their gains, which the drift of a shared machine's speed from
  // one minute to the next does not touch.
  const double cost = cost_per_token(subject);
  if (diagnosis_.ladder.empty()) {
    rung.tokens_per_second = cost > 0 ? 1 / cost : 0;
  } else {
    const Rung& before = last_kept();
    rung.tokens_per_second = before.tokens_per_second * rung.gain;
    rung.cumulative = before.cumulative * (rung.kept ? rung.gain : 1);
  }
  rung.rows_per_second = subject.tokens_per_sequence() > 0 ? rung.tokens_per_second / subject.tokens_per_sequence() : 0;
  rung.epoch_seconds = rung.tokens_per_second > 0 ? facts_.tokens_per_epoch / rung.tokens_per_second : 0;
  if (!subject.runs()) return;
  const Readings readings = readings_of(subject);
  const auto peak = readings.machine.peak_gflops.find(readings.model.precision);
  const double steps_alone = subject.seconds_per_token();
  if (peak != readings.machine.peak_gflops.end() && steps_alone > 0)
    rung.utilisation = readings.model.flop_per_token / steps_alone * 1e-9 / peak->second;
  rung.peak_memory_bytes = readings.stretch.peak_memory_bytes;
}

void Climber::look() {
  const Job first = options_.naive ? naive_job(diagnosis_.written) : diagnosis_.written;
  plan_measuring(first);
  history_ = history_of(run_directory_of(diagnosis_.written));
  measure_batch_curve(first);
  constexpr double kShareOfBudget = 0.1;
  std::unique_ptr<Subject> subject = subject_of(first);
  tell(options_.naive ? "one sequence at a time, padded, in fp32" : "the job as it is written");
  try {
    subject->start();
    double measured = 0;
    for (int i = 0; i < kLeastPairs || measured < kShareOfBudget * options_.budget_seconds; ++i) {
      measured += subject->measure(block_seconds()).seconds;
      if (i + 1 >= 3 && measured > 2 * kShareOfBudget * options_.budget_seconds) break;
    }
  } catch (const RunFailed& failure) {
    user_error("{}: it cannot be trained: {}", diagnosis_.job_name, failure.what());
  }
  current_ = subject.get();
  subjects_.push_back(std::move(subject));
  rung_of_.push_back(0);
  measure_process_curve();
  measure_course();
  const MachineReadings machine = diagnosis_.before.machine;
  diagnosis_.before = readings_of(*current_);
  diagnosis_.before.machine = machine;
  diagnosis_.findings = judge(diagnosis_.before);
  Rung rung{.step = options_.naive ? "one sequence at a time, padded, fp32" : "as written",
            .kept = true,
            .verdict = "the baseline"};
  fill(rung, *current_);
  diagnosis_.ladder.push_back(rung);
  diagnosis_.after = diagnosis_.before;
}

void Climber::leave_out(const Finding& finding, const std::string& reason) {
  tried_.push_back(finding.id);
  diagnosis_.not_measured.push_back(
      {.step = finding.fix && finding.fix->is_setting() ? step_name(*finding.fix) : finding.id,
       .predicted_gain = finding.predicted_gain,
       .reason = reason});
}

const Finding* Climber::next_finding(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (std::find(tried_.begin(), tried_.end(), finding.id) != tried_.end()) continue;
    if (finding.id == kSeveralProcesses) continue;  // after all that changes the job
    if (!finding.fix || !finding.fix->is_setting()) {
      if (finding.fix && !finding.is_quality) leave_out(finding, "no setting of the job: " + finding.fix->advice);
      continue;
    }
    if (setting_of(current_->job(), finding.fix->key) == finding.fix->value) continue;
    if (finding.sameness == Sameness::changes_maths && !options_.changes_maths) {
      leave_out(finding, "it changes the maths; --fix all tries it");
      continue;
    }
    return &finding;
  }
  return nullptr;
}

// A change that somebody wonders about, measured as a fix is.
void Climber::try_what_was_asked() {
  for (const std::string& setting : options_.tries) {
    const size_t equals = setting.find('=');
    const Finding asked{.id = std::string(kAskedFor),
                        .fix = Fix{.key = setting.substr(0, equals), .value = setting.substr(equals + 1)},
                        .sameness = Sameness::changes_maths};
    if (!is_of_course(asked.fix->key) && left() < rung_seconds()) {
      leave_out(asked, fmt::format("the budget was over; it needs about {}", format_duration(rung_seconds())));
      continue;
    }
    try_fix(asked);
  }
}

void Climber::climb() {
  try_what_was_asked();
  std::vector<Finding> findings = diagnosis_.findings;
  while (const Finding* found = next_finding(findings)) {
    const Finding finding = *found;
    const bool by_parts = is_of_course(finding.fix->key);
    if (!by_parts && left() < rung_seconds()) {
      if (diagnosis_.ladder.size() == 1 && options_.tries.empty()) {
        user_error(
            "a budget of {} is too short: the first fix ({}) would be done after {}; give at least --budget {:.0f}s",
            format_duration(options_.budget_seconds), step_name(*finding.fix),
            format_duration(options_.budget_seconds - left() + rung_seconds()),
            std::ceil(1.3 * (options_.budget_seconds - left() + rung_seconds())));
      }
      leave_out(finding, fmt::format("the budget was over; it needs about {}", format_duration(rung_seconds())));
      continue;
    }
    tried_.push_back(finding.id);
    try_fix(finding);
    if (!diagnosis_.ladder.back().kept) continue;
    diagnosis_.after = readings_of(*current_);
    findings = judge(diagnosis_.after);  // shares have changed, and with them what the next fix should gain
    for (const Finding& other : findings) {
      const bool known = std::any_of(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                                     [&](const Finding& each) { return each.id == other.id; });
      if (!known) diagnosis_.findings.push_back(other);
    }
  }
  try_processes();
}

// The last rung: the tuned job by several processes, as many as were fastest of the job as it is written.
void Climber::try_processes() {
  const auto& findings = diagnosis_.findings;
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.id == kSeveralProcesses; });
  if (found == findings.end()) return;
  const Finding finding = *found;
  if (left() < rung_seconds()) {
    leave_out(finding, fmt::format("the budget was over; it needs about {}", format_duration(rung_seconds())));
    return;
  }
  tried_.push_back(finding.id);
  try_fix(finding);
  if (!diagnosis_.ladder.back().kept) return;
  diagnosis_.after = readings_of(*current_);
  diagnosis_.notes.push_back(fmt::format("The last rung is no setting of the job; {}.", finding.fix->advice));
}

void Climber::try_fix(const Finding& finding) {
  Rung rung{.step = step_name(*finding.fix),
            .finding = finding.id,
            .fix = *finding.fix,
            .sameness = finding.sameness,
            .predicted_gain = finding.predicted_gain};
  tell(finding.id == kAskedFor ? rung.step : fmt::format("{}, predicted {:.2f}x", rung.step, rung.predicted_gain));
  if (is_of_course(finding.fix->key)) return try_course_fix(finding, std::move(rung));
  std::unique_ptr<Subject> candidate;
  try {
    const Fix& fix = *finding.fix;
    const int64_t processes = std::max<int64_t>(1, fix.processes);
    candidate = subject_of(fix.is_setting() ? with_fix(current_->job(), fix) : current_->job(), true, processes);
    const int64_t both = (1 + processes) * current_->facts().planned_bytes;
    rung.interleaved = facts_.on_gpu || both < memory_available();
    if (!rung.interleaved) current_->stop();
    candidate->start();
    rung.kept = take_turns(*candidate, rung);
  } catch (const RunFailed& failure) {
    rung.verdict = "it cannot be trained: " + first_line(failure.what());
  } catch (const UserError& error) {
    rung.verdict = "the job does not allow it: " + first_line(error.what());
  }
  if (!rung.kept && !rung.interleaved && !current_->runs()) {
    // Its memory is free again.
    if (candidate) candidate->stop();
    current_->start();
  }
  const bool candidate_measured = candidate && !candidate->blocks().empty();
  if (candidate_measured) {
    fill(rung, *candidate);
    rung_of_.push_back(diagnosis_.ladder.size());
    subjects_.push_back(std::move(candidate));
    if (rung.kept) {
      current_->stop();
      current_ = subjects_.back().get();
      course_ = course_of(current_->job(), facts_, current_->step_seconds());
      course_.evaluation_seconds = diagnosis_.before.course.evaluation_seconds;
      course_.save_seconds = diagnosis_.before.course.save_seconds;
    } else {
      subjects_.back()->stop();
    }
  }
  if (!candidate_measured) rung.cumulative = last_kept().cumulative;
  diagnosis_.ladder.push_back(std::move(rung));
}

// Stretches of both, in turns, whose ratio is the gain. Returns whether it is one.
bool Climber::take_turns(Subject& candidate, Rung& rung) {
  constexpr double kLongest = 30, kClear = 0.02;
  const double seconds =
      std::max({block_seconds(), rung.interleaved ? current_->step_seconds() : 0.0, candidate.step_seconds()});
  const double until = left() - std::min(kLongest, left() / 2);
  std::vector<double> ratios;
  const double course = course_per_token();
  for (int pair = 0; pair < kMostPairs; ++pair) {
    double ours = 0, theirs = 0;
    const bool first = pair % 2 == 0;  // what is measured second is not always the same
    if (first && rung.interleaved) ours = current_->seconds_per_token(current_->measure(seconds));
    theirs = candidate.seconds_per_token(candidate.measure(seconds));
    if (!first && rung.interleaved) ours = current_->seconds_per_token(current_->measure(seconds));
    if (!rung.interleaved) ours = current_->seconds_per_token();
    if (theirs > 0) ratios.push_back((ours + course) / (theirs + course));
    if (pair + 1 < kLeastPairs) continue;
    const Ratio gain = median_ratio(ratios);
    const bool is_clear = (gain.high - gain.low) / gain.median < 2 * kClear;
    if (is_clear || left() < until) break;
  }
  const Ratio gain = median_ratio(ratios);
  rung.gain = gain.median;
  rung.gain_low = gain.low;
  rung.gain_high = gain.high;
  rung.pairs = std::ssize(ratios);
  prove(rung, candidate);
  judge_rung(rung, candidate);
  return rung.kept;
}

void Climber::prove(Rung& rung, const Subject& candidate) const {
  const bool asked = rung.finding == kAskedFor;
  if (rung.sameness == Sameness::changes_maths && !asked) return;
  const StepProof proof =
      compare_gradients(current_->gradient_path(), candidate.gradient_path(),
                        allowed_difference(current_->facts().precision, candidate.facts().precision));
  // Nobody said of what was asked for that it is the same.
  if (asked && !proof.holds) return;
  rung.proof = proof;
  rung.sameness = proof.same_bits ? Sameness::same_bits : Sameness::same_maths;
}

void Climber::judge_rung(Rung& rung, const Subject& candidate) const {
  constexpr double kLeastGain = 1.01;
  if (rung.finding == kAskedFor) {
    rung.verdict = "measured because it was asked for (--try)";
    return;
  }
  const std::string gain = fmt::format("{:.2f}x [{:.2f}, {:.2f}]", rung.gain, rung.gain_low, rung.gain_high);
  if (rung.proof.measured && !rung.proof.holds) {
    rung.verdict = fmt::format("rejected, {}: the gradient of a step differs by {:.2g} of its norm, {:.2g} is allowed",
                               gain, rung.proof.difference, rung.proof.allowed);
    return;
  }
  if (rung.gain_low <= 1 && rung.gain_high >= 1) {
    rung.verdict = fmt::format("rejected, {}: within the noise", gain);
    return;
  }
  if (rung.gain < kLeastGain) {
    rung.verdict = fmt::format("rejected, {}: {}", gain, rung.gain < 1 ? "slower" : "too little to matter");
    return;
  }
  if (rung.sameness == Sameness::changes_maths) {
    constexpr double kWorse = 0.01;
    const double tokens = std::min(current_->tokens_done(), candidate.tokens_done());
    const auto before = current_->loss_after(tokens), after = candidate.loss_after(tokens);
    if (!before || !after || !(*after <= *before * (1 + kWorse))) {
      rung.verdict = fmt::format("rejected, {}: the loss after {} tokens is {:.4f}, and {:.4f} without it", gain,
                                 format_count(tokens), after.value_or(-1), before.value_or(-1));
      return;
    }
  }
  rung.kept = true;
  rung.verdict = "kept";
}

// What happens between the steps does not touch them: their speed is known, and what was measured of the rest is added.
void Climber::try_course_fix(const Finding& finding, Rung rung) {
  Job job = current_->job();
  try {
    job = with_fix(job, *finding.fix);
  } catch (const UserError& error) {
    rung.verdict = fmt::format("the job does not allow it: {}", error.what());
    diagnosis_.ladder.push_back(std::move(rung));
    return;
  }
  const double before = cost_per_token(*current_);
  CourseReadings changed = course_of(job, facts_, current_->step_seconds());
  changed.evaluation_seconds = course_.evaluation_seconds;
  changed.save_seconds = course_.save_seconds;
  const CourseReadings kept = std::exchange(course_, changed);
  std::vector<double> ratios;
  for (const Block& block : current_->blocks()) {
    const double steps = current_->seconds_per_token(block);
    const double old = steps + kept.seconds_per_epoch() / std::max(1.0, facts_.tokens_per_epoch);
    ratios.push_back(old / (steps + course_per_token()));
  }
  const Ratio gain = median_ratio(ratios);
  rung.gain = before / cost_per_token(*current_);
  rung.gain_low = std::min(rung.gain, gain.low);
  rung.gain_high = std::max(rung.gain, gain.high);
  rung.pairs = std::ssize(ratios);
  rung.sameness = Sameness::same_bits;
  judge_rung(rung, *current_);
  if (rung.kept) {
    rung.verdict = "kept; its parts were measured, one by one";
    current_->set_job(std::move(job));
  } else {
    course_ = kept;
  }
  fill(rung, *current_);
  diagnosis_.ladder.push_back(std::move(rung));
}

// After as many tokens as every rung has seen.
void Climber::set_losses() {
  double tokens = std::numeric_limits<double>::infinity();
  for (const auto& subject : subjects_) tokens = std::min(tokens, subject->tokens_done());
  for (size_t i = 0; i < subjects_.size(); ++i) {
    Rung& rung = diagnosis_.ladder[rung_of_[i]];
    rung.loss = subjects_[i]->loss_after(tokens).value_or(-1);
    rung.loss_tokens = tokens;
  }
}

// How much the loss differs between runs of the tuned job that differ in their seeds alone.
void Climber::measure_spread() {
  constexpr int64_t kRepeats = 2;
  const double tokens = diagnosis_.ladder.front().loss_tokens;
  const double needed = current_->start_seconds() + 1.2 * tokens * current_->seconds_per_token();
  std::vector<double> losses;
  if (const auto own = current_->loss_after(tokens)) losses.push_back(*own);
  for (int64_t i = 1; i <= kRepeats && left() > needed; ++i) {
    tell(fmt::format("the loss of another seed, {} of {}", i, kRepeats));
    Job job = current_->job();
    job.training.seed += i;
    const std::unique_ptr<Subject> repeat = subject_of(job, false);
    try {
      repeat->start();
      while (repeat->tokens_done() < tokens) repeat->measure(block_seconds());
    } catch (const RunFailed&) {
      return;
    }
    if (const auto loss = repeat->loss_after(tokens)) losses.push_back(*loss);
  }
  if (losses.size() < 2) return;
  for (Rung& rung : diagnosis_.ladder) rung.loss_spread = standard_deviation(losses);
}

// Short trainings of the tuned job at other learning rates, all on the same tokens.
void Climber::sweep_learning_rate() {
  constexpr std::array kFactors = {1.0, 0.3, 3.0, 0.1, 10.0};
  constexpr double kLeastBudget = 120, kShareOfRest = 0.8, kLeastSteps = 20, kMostSteps = 300;
  if (options_.budget_seconds < kLeastBudget) return;
  const double each = kShareOfRest * left() / static_cast<double>(kFactors.size()) - current_->start_seconds();
  const double steps = std::min(kMostSteps, each / std::max(1e-9, current_->step_seconds()));
  if (steps < kLeastSteps) return;
  const Block measured = current_->total();
  const double tokens = steps * measured.tokens / static_cast<double>(std::max<int64_t>(1, measured.steps));
  const MeasuringLength kept = length_;
  length_.warmup_steps = std::min(length_.warmup_steps, static_cast<int64_t>(steps / 4));
  std::vector<CurvePoint> curve;
  for (const double factor : kFactors) {
    tell(fmt::format("learning rate times {:g}", factor));
    Job job = current_->job();
    job.training.learning_rate *= factor;
    job.training.muon_learning_rate *= factor;
    const std::unique_ptr<Subject> trial = subject_of(job, false);
    CurvePoint point{.x = factor};
    try {
      trial->start();
      while (trial->tokens_done() < tokens) trial->measure(block_seconds());
      const double loss = trial->loss_after(tokens).value_or(-1);
      point.loss = std::isfinite(loss) ? loss : -1;
    } catch (const RunFailed&) {  // it diverged
    }
    curve.push_back(point);
  }
  length_ = kept;
  std::sort(curve.begin(), curve.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
  diagnosis_.before.rate_curve = diagnosis_.after.rate_curve = curve;
  diagnosis_.notes.push_back(fmt::format(
      "Learning rates were tried for {:.0f} steps each: what is best for so few need not be for a whole run.", steps));
  for (const Finding& finding : judge(diagnosis_.after)) {
    if (finding.id == "learning_rate") diagnosis_.findings.push_back(finding);
  }
}

// The first rung and the last in turns: what the gains, each over the rung before, should come to.
void Climber::compare_ends() {
  const Rung& last = last_kept();
  if (&last == &diagnosis_.ladder.front() || rung_of_.back() == 0 || left() < rung_seconds()) return;
  Subject& first = *subjects_.front();
  tell("the first rung and the last, in turns");
  const std::unique_ptr<Subject> again = subject_of(first.job(), false);
  try {
    if (2 * first.facts().planned_bytes >= memory_available() && !facts_.on_gpu) return;
    again->start();
    std::vector<double> ratios;
    const double seconds = std::max({block_seconds(), again->step_seconds(), current_->step_seconds()});
    for (int pair = 0; pair < kLeastPairs; ++pair) {
      const double before = again->seconds_per_token(again->measure(seconds));
      const double after = current_->seconds_per_token(current_->measure(seconds));
      if (after > 0) ratios.push_back(before / after);
    }
    const Ratio gain = median_ratio(ratios);
    diagnosis_.notes.push_back(
        fmt::format("The steps of the first rung and of the last, measured in turns: {:.2f}x [{:.2f}, {:.2f}].",
                    gain.median, gain.low, gain.high));
  } catch (const RunFailed&) {  // it ran before: what it has shown counts
  }
}

void Climber::finish() {
  if (subjects_.empty()) return;
  set_losses();
  if (current_->runs()) diagnosis_.after = readings_of(*current_);
  if (diagnosis_.interrupted) return;
  if (diagnosis_.ladder.size() > 1) {
    measure_spread();
    compare_ends();
  }
  sweep_learning_rate();
}

}  // namespace brisk
