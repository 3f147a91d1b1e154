#include "report/read/run_record.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/lines.h"
#include "base/ledger.h"
#include "base/parse_json.h"
#include "base/text/plural.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
}

int64_t whole(const Json& json, const char* key) {
  const double value = number(json, key);
  return std::abs(value) < 9e15 ? static_cast<int64_t>(value) : 0;
}

std::string word(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The JSON objects of a file, line by line. A last line without its end is one that is being written, or that a killed
// process left.
void each_line(const std::string& path, std::vector<std::string>& notes, const std::function<void(const Json&)>& use) {
  int64_t bad = 0;
  for_each_log_line(path, [&](const LogLine& line) {
    const Json json = line.too_long ? Json() : parse_json_or_discard(line.text, kLogLineJson);
    if (json.is_object()) {
      use(json);
    } else if (!line.ended) {
      notes.push_back(fmt::format("{}: the last line is incomplete; ignored", path));
    } else if (line.text.find_first_not_of(" \t\r") != std::string_view::npos) {
      ++bad;
    }
  });
  if (bad > 0) {
    notes.push_back(fmt::format("{}: {} JSON {}, or larger than a run writes them; ignored", path,
                                bad == 1 ? "1 line is not a" : fmt::format("{} lines are not", bad),
                                plural_noun(bad, "object")));
  }
}

void read_metrics(const std::string& path, RunRecord& run) {
  each_line(path, run.notes, [&](const Json& line) {
    if (Metrics metrics = metrics_of_line(line, run.metrics); !metrics.empty()) {
      run.evaluations.push_back(
          {number(line, "step"), number(line, "epoch"), kUnknown, number(line, "seconds"), std::move(metrics)});
    } else if (line.contains("loss")) {
      StepPoint point{number(line, "step"),
                      number(line, "epoch"),
                      number(line, "tokens"),
                      number(line, "seconds"),
                      number(line, "learning_rate"),
                      number(line, "gradient_norm"),
                      number(line, "tokens_per_second")};
      for (const Metric& metric : metrics_of_step_line(line, run.metrics))
        point.metrics.emplace_back(metric.name, metric.value);
      if (std::isnan(point.seconds)) {  // of an earlier brisk: the steps' own time, added up
        const StepPoint before = run.steps.empty() ? StepPoint{0, 0, 0, 0} : run.steps.back();
        point.seconds = before.seconds + 1e-3 * number(line, "step_ms") * (point.step - before.step);
      }
      run.steps.push_back(point);
      run.skipped_updates = number(line, "skipped_updates");
      run.rollbacks = number(line, "rollbacks");
    }
  });
  constexpr std::ptrdiff_t kMostMetrics = 100;  // a chart each; damaged lines may have any number of names
  for (const EvaluationPoint& point : run.evaluations) {
    for (const Metric& metric : point.metrics) {
      if (std::distance(run.metrics.begin(), run.metrics.end()) < kMostMetrics &&
          run.metrics.find(metric.name) == nullptr)
        run.metrics.add(standard_metric(metric.name));
    }
  }
  std::erase_if(run.steps, [](const StepPoint& point) { return std::isnan(point.step); });
  std::erase_if(run.evaluations, [](const EvaluationPoint& point) { return std::isnan(point.step); });
  // Steps are written in order; a damaged file may have them otherwise, and curves go from left to right.
  const auto earlier = [](const auto& a, const auto& b) { return a.step < b.step; };
  std::stable_sort(run.steps.begin(), run.steps.end(), earlier);
  std::stable_sort(run.evaluations.begin(), run.evaluations.end(), earlier);
  for (EvaluationPoint& evaluation : run.evaluations) {  // an evaluation follows a step, and not always a logged one
    const auto after = std::upper_bound(run.steps.begin(), run.steps.end(), evaluation.step,
                                        [](double step, const StepPoint& point) { return step < point.step; });
    if (after == run.steps.begin()) continue;
    const StepPoint& before = *(after - 1);
    const double share = before.step > 0 ? evaluation.step / before.step : 1;
    evaluation.tokens = before.tokens * share;
    if (std::isnan(evaluation.seconds)) evaluation.seconds = before.seconds * share;
  }
}

void add_phase(PhaseSeconds& ledger, const std::string& phase, double seconds) {
  for (auto& [name, sum] : ledger) {
    if (name == phase) {
      sum += seconds;
      return;
    }
  }
  constexpr size_t kMostPhases = 100;  // five times what there are
  if (ledger.size() < kMostPhases) ledger.emplace_back(phase, seconds);
}

void add_ledger(PhaseSeconds& ledger, const Json& line) {
  const auto found = line.find("ledger");
  if (found == line.end() || !found->is_object()) return;
  for (const auto& [phase, seconds] : found->items()) {
    if (seconds.is_number()) add_phase(ledger, phase, seconds.get<double>());
  }
}

// Phases in the order of the ledger; those it does not know, of another brisk, last.
void sort_phases(PhaseSeconds& ledger) {
  const auto place = [](const std::string& name) {
    for (int i = 0; i < kPhases; ++i) {
      if (phase_name(static_cast<Phase>(i)) == name) return i;
    }
    return kPhases;
  };
  std::stable_sort(ledger.begin(), ledger.end(),
                   [&](const auto& a, const auto& b) { return place(a.first) < place(b.first); });
}

bool is_alive(const Json& start) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto process = static_cast<pid_t>(whole(start, "process"));
  if (word(start, "host") != host.data() || process <= 0) return false;
  return ::kill(process, 0) == 0 || errno == EPERM;
}

// What a process did, for the speed of the run.
struct ProcessWork {
  double training_seconds = 0, tokens = 0, flop_per_token = kUnknown, peak_gflops = kUnknown;
};

void add_stretch(const Json& line, RunRecord& run, ProcessWork& work) {
  const int64_t epoch = whole(line, "epoch");
  if (run.epochs.empty() || run.epochs.back().epoch != epoch) run.epochs.push_back({epoch});
  EpochTime& time = run.epochs.back();
  RunTotals& totals = run.totals;
  for (auto [sum, key] :
       {std::pair(&time.steps, "steps"), std::pair(&time.tokens, "tokens"), std::pair(&time.sequences, "sequences"),
        std::pair(&totals.steps, "steps"), std::pair(&totals.tokens, "tokens"),
        std::pair(&totals.sequences, "sequences"), std::pair(&totals.rows, "rows")}) {
    *sum += whole(line, key);
  }
  time.step = std::max(time.step, whole(line, "step"));
  const double seconds = number(line, "seconds");
  if (std::isfinite(seconds)) {
    time.seconds += seconds;
    totals.seconds += seconds;
  }
  add_ledger(time.ledger, line);
  add_ledger(totals.ledger, line);
  PhaseSeconds of_line;
  add_ledger(of_line, line);
  work.training_seconds += training_seconds(of_line);
  work.tokens += static_cast<double>(whole(line, "tokens"));
  if (number(line, "peak_gflops") > 0) work.peak_gflops = number(line, "peak_gflops");
  if (number(line, "total_steps") > 0) totals.total_steps = number(line, "total_steps");
  run.peak_memory_bytes = std::fmax(run.peak_memory_bytes, number(line, "peak_memory_bytes"));
}

// What an epoch's steps added up to: the last line of several has them all.
void add_epoch(const Json& line, RunRecord& run) {
  const int64_t epoch = whole(line, "epoch");
  const auto found =
      std::find_if(run.epochs.begin(), run.epochs.end(), [&](const EpochTime& time) { return time.epoch == epoch; });
  if (found == run.epochs.end()) return;
  found->training_loss = number(line, "training_loss");
  found->training_accuracy = number(line, "training_accuracy");
  found->since_step = whole(line, "since_step");
  found->skipped_updates = whole(line, "skipped_updates");
}

void read_ledger(const std::string& path, RunRecord& run) {
  Json last_start;
  std::vector<ProcessWork> works;
  each_line(path, run.notes, [&](const Json& line) {
    const std::string kind = word(line, "kind");
    if (kind == "start") {
      last_start = line;
      run.status = "unfinished";  // until its end is read
      run.diverged_at = kUnknown;
      run.processes.push_back({whole(line, "step"), word(line, "time"), word(line, "host"), word(line, "cpu"),
                               word(line, "system"), word(line, "isa"), word(line, "precision"), number(line, "cores"),
                               number(line, "logical_processors"), number(line, "threads"),
                               number(line, "memory_bytes"), number(line, "peak_gflops")});
      works.push_back({.flop_per_token = number(line, "flop_per_token"), .peak_gflops = number(line, "peak_gflops")});
      run.totals.steps_per_epoch = number(line, "steps_per_epoch");
      run.totals.total_steps = number(line, "total_steps");
    } else if (kind == "end") {
      run.status = word(line, "ended");
      run.diverged_at = number(line, "diverged_at");
      last_start = Json();
      // One that found nothing left to do did not work on the run.
      if (run.processes.size() > 1 && works.size() == run.processes.size() && works.back().tokens == 0) {
        run.processes.pop_back();
        works.pop_back();
      }
    } else if (kind == "stretch") {
      if (works.empty()) works.emplace_back();
      add_stretch(line, run, works.back());
    } else if (kind == "epoch") {
      add_epoch(line, run);
    }
  });
  if (last_start.is_object() && is_alive(last_start)) run.status = "running";
  for (EpochTime& time : run.epochs) sort_phases(time.ledger);
  sort_phases(run.totals.ledger);
  run.ledger = run.totals.ledger;
  RunTotals& totals = run.totals;
  totals.processes = std::ssize(run.processes);
  for (const ProcessWork& work : works) {  // one that found nothing left to do has no speed
    if (!(work.tokens > 0)) continue;
    totals.training_seconds += work.training_seconds;
    totals.gigaflop += 1e-9 * work.tokens * work.flop_per_token;
    totals.peak_gigaflop += work.training_seconds * work.peak_gflops;
  }
  if (run.processes.empty()) return;
  const ProcessStart& process = run.processes.back();
  run.precision = process.precision;
  run.isa = process.isa;
  run.threads = process.threads;
  run.peak_gflops = totals.tokens > 0 ? totals.peak_gflops() : process.peak_gflops;
}

void read_start_facts(const std::string& path, RunRecord& run) {
  std::vector<std::string> said_already;
  each_line(path, said_already, [&](const Json& line) {
    if (word(line, "kind") != "start") return;
    run.parameters = number(line, "parameters");
    run.training_tokens = number(line, "training_tokens");
    run.validation_tokens = number(line, "validation_tokens");
    run.validation_fingerprint = word(line, "validation_fingerprint");
    run.tokenizer_fingerprint = word(line, "tokenizer_fingerprint");
    run.classes_fingerprint = word(line, "classes_fingerprint");
    if (line.contains("metrics")) run.metrics = metric_kinds_from_json(line["metrics"]);
  });
}

constexpr size_t kMostSamples = 10'000;  // each is compared with the prompts of the others

// Of a run that goes on, those of summary.json are of an earlier process.
void read_warnings(const Json& summary, RunRecord& run) {
  constexpr size_t kMost = 20;
  const auto warnings = summary.find("warnings");
  if (run.status != word(summary, "ended") || warnings == summary.end() || !warnings->is_array()) return;
  for (const Json& warning : *warnings) {
    if (warning.is_string() && run.warnings.size() < kMost) run.warnings.push_back(warning.get<std::string>());
  }
}

// What the GPU told of itself in the last process.
void read_gpu(const Json& summary, RunRecord& run) {
  run.device = word(summary, "device");
  constexpr size_t kMostRanks = 1024;
  if (const auto ranks = summary.find("ranks"); ranks != summary.end() && ranks->is_array()) {
    for (const Json& rank : *ranks) {
      if (!rank.is_object() || run.rank_gpus.size() == kMostRanks) continue;
      const auto gpu = rank.find("gpu");
      if (gpu == rank.end() || !gpu->is_object()) continue;
      run.rank_gpus.push_back({number(rank, "rank"), number(*gpu, "mean_busy_share"),
                               number(*gpu, "max_memory_used_bytes"), number(*gpu, "max_celsius")});
    }
  }
  const auto last = summary.find("last_process");
  const Json& process = last != summary.end() && last->is_object() ? *last : summary;
  const auto gpu = process.find("gpu");
  if (gpu == process.end() || !gpu->is_object()) return;
  run.gpu_busy_share = number(*gpu, "mean_busy_share");
  run.gpu_memory_used_bytes = number(*gpu, "max_memory_used_bytes");
}

// Of several ranks, what the last processes of the run told.
void read_ranks(const Json& summary, RunRecord& run) {
  constexpr size_t kMost = 4096;
  const auto ranks = summary.find("ranks");
  if (ranks == summary.end() || !ranks->is_array() || ranks->size() < 2) return;
  for (const Json& rank : *ranks) {
    if (rank.is_object() && run.ranks.size() < kMost)
      run.ranks.push_back({.host = word(rank, "host"),
                           .communication_seconds = number(rank, "communication_seconds"),
                           .work_seconds = number(rank, "work_seconds")});
  }
  const auto last = summary.find("last_process");
  PhaseSeconds ledger;
  add_ledger(ledger, last != summary.end() && last->is_object() ? *last : summary);
  run.ranks_training_seconds = training_seconds(ledger);
}

// What ledger.jsonl did not say: all of it, for a run of an earlier brisk.
void read_summary(const std::string& path, RunRecord& run) {
  if (!file_exists(path)) return;
  const Json json = parse_json_or_discard(read_file(path, file_kind::summary), kLogLineJson);
  if (!json.is_object()) {
    run.notes.push_back(fmt::format("{}: not a JSON object; ignored", path));
    return;
  }
  const auto fill = [&](double& value, const char* key) {
    if (std::isnan(value)) value = number(json, key);
  };
  fill(run.parameters, "parameters");
  fill(run.peak_memory_bytes, "peak_memory_bytes");
  fill(run.tokens_per_second, "run_tokens_per_second");
  fill(run.gflops, "gflops");
  fill(run.peak_gflops, "peak_gflops");
  fill(run.utilisation, "utilisation");
  fill(run.threads, "threads");
  if (run.processes.empty()) fill(run.seconds, "wall_seconds");
  if (run.precision.empty()) run.precision = word(json, "precision");
  if (run.isa.empty()) run.isa = word(json, "isa");
  if (run.status.empty()) run.status = word(json, "ended");
  if (run.ledger.empty()) {
    add_ledger(run.ledger, json);
    std::erase_if(run.ledger, [](const auto& phase) { return phase.second <= 0; });
  }
  read_warnings(json, run);
  read_gpu(json, run);
  read_ranks(json, run);
}

// Of an earlier brisk's run that did not end: what its lines say.
double median_speed(const std::vector<StepPoint>& steps) {
  std::vector<double> speeds;
  for (const StepPoint& point : steps) {
    if (std::isfinite(point.tokens_per_second)) speeds.push_back(point.tokens_per_second);
  }
  if (speeds.empty()) return kUnknown;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

void check_is_a_run(const std::string& path) {
  if (!is_directory(path)) {
    user_error("{}: {}; give the run directory that brisk train wrote", path,
               file_exists(path) ? "it is a file" : "there is no such folder");
  }
  if (!file_exists(path + "/job.json")) {
    user_error("{}: not a run directory: it has no job.json; give the one that brisk train wrote", path);
  }
}

std::string name_of(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

void read_task(RunRecord& run) {
  for (const Setting& setting : run.settings) {
    const Json value = parse_json_or_discard(setting.value);
    if (!value.is_string()) continue;
    if (setting.path == "task") run.task = value.get<std::string>();
    if (setting.path == "training.best_by") run.best_by = value.get<std::string>();
    if (setting.path == "training.teacher") run.has_teacher = !value.get<std::string>().empty();
  }
}

}  // namespace

double StepPoint::metric(std::string_view name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& it) { return it.first == name; });
  return found != metrics.end() ? found->second : kUnknown;
}

std::string RunRecord::status_text() const {
  return std::isfinite(diverged_at) ? fmt::format("{} at step {:.0f}", status, diverged_at) : status;
}

const EvaluationPoint* RunRecord::best_evaluation() const {
  const EvaluationPoint* best = nullptr;
  for (const EvaluationPoint& point : evaluations) {
    if (better(point.metrics, best == nullptr ? Metrics() : best->metrics, best_by)) best = &point;
  }
  return best;
}

const EvaluationPoint* RunRecord::last_evaluation() const {
  return evaluations.empty() ? nullptr : &evaluations.back();
}

namespace {

void read_figures(RunRecord& run) {
  const std::string& path = run.path;
  if (run.metrics.empty()) run.metrics.add(standard_metric(run.best_by));
  if (const Metric* metric = run.metrics.find(run.best_by)) run.best_by = metric->name;
  each_line(path + "/samples.jsonl", run.notes, [&](const Json& line) {
    if (run.samples.size() >= kMostSamples) return;
    const auto ended = line.find("ended");
    run.samples.push_back({whole(line, "step"), word(line, "prompt"), word(line, "text"),
                           ended != line.end() && ended->is_boolean() && ended->get<bool>(), word(line, "reference"),
                           word(line, "image")});
  });
  read_ledger(path + "/ledger.jsonl", run);
  const RunTotals& totals = run.totals;
  if (totals.seconds > 0) run.seconds = totals.seconds;
  run.tokens_per_second = totals.tokens_per_second();
  run.sequences_per_second = totals.sequences_per_second();
  if (totals.steps > 0)
    run.seconds_per_epoch = totals.training_seconds / static_cast<double>(totals.steps) * totals.steps_per_epoch;
  run.gflops = totals.gflops();
  run.utilisation = totals.utilisation();
  run.total_steps = totals.total_steps;
  read_summary(path + "/summary.json", run);
  if (run.status.empty()) run.status = "unfinished";
  if (std::isnan(run.tokens_per_second)) run.tokens_per_second = median_speed(run.steps);
  if (!run.steps.empty()) {
    run.step = run.steps.back().step;
    run.tokens = run.steps.back().tokens;
    // The time since the last stretch was written is in the curve already.
    run.seconds = std::fmax(run.seconds, run.steps.back().seconds);
  }
  if (!run.evaluations.empty()) {
    run.step = std::fmax(run.step, run.evaluations.back().step);
    run.seconds = std::fmax(run.seconds, run.evaluations.back().seconds);
  }
  // What a time box expected at first is not what a finished run did.
  if (run.status == "finished" && std::isfinite(run.step)) run.total_steps = run.step;
}

}  // namespace

double training_seconds(const PhaseSeconds& ledger) {
  double sum = 0;
  for (const auto& [phase, seconds] : ledger) {
    if (phase != "start_up" && phase != "evaluation" && phase != "checkpoint") sum += seconds;
  }
  return sum;
}

RunRecord read_run(const std::string& path) {
  check_is_a_run(path);
  RunRecord run;
  run.path = path;
  run.name = name_of(path);
  run.settings = read_settings(read_file(path + "/job.json", file_kind::job), path + "/job.json", run.notes);
  read_start_facts(path + "/ledger.jsonl", run);
  read_metrics(path + "/metrics.jsonl", run);
  read_task(run);
  run.classes = read_class_results(path + "/evaluation.json", run.notes);
  run.data = read_data_facts(path + "/statistics.json", run.notes);
  read_figures(run);
  return run;
}

RunRecord read_run_figures(const std::string& path) {
  RunRecord run;
  run.path = path;
  run.name = name_of(path);
  read_start_facts(path + "/ledger.jsonl", run);
  read_metrics(path + "/metrics.jsonl", run);
  read_figures(run);
  return run;
}

}  // namespace brisk
