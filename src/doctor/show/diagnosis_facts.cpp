#include "doctor/show/diagnosis_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "job/job_options.h"
#include "report/page/ledger_bars.h"
#include "report/read/run_facts.h"

namespace brisk {

double known(double value) { return value >= 0 ? value : kUnknown; }

bool is_measured(const Readings& readings) { return readings.stretch.steps > 0 && readings.stretch.seconds > 0; }
bool is_measured(const Rung& rung) { return std::isfinite(rung.tokens_per_second) && rung.tokens_per_second > 0; }

std::vector<PhaseShare> shares_of(const Ledger::Totals& ledger) {
  std::vector<PhaseShare> shares;
  const double all = ledger.seconds();
  for (int i = 0; i < kPhases && all > 0; ++i) {
    const auto phase = static_cast<Phase>(i);
    const double seconds = ledger.seconds(phase);
    if (seconds > 0) shares.push_back({std::string(phase_name(phase)), seconds, 100 * seconds / all});
  }
  return shares;
}

PhaseSeconds phase_seconds_of(const Ledger::Totals& ledger) {
  PhaseSeconds phases;
  for (const PhaseShare& share : shares_of(ledger)) phases.emplace_back(share.phase, share.seconds);
  return phases;
}

namespace {

// The measured rate of large products and the bandwidth, as the time of each kind of work in the whole stretch.
struct AttainableSeconds {
  double linear = 0, attention = 0, head = 0, optimizer = 0;
};

AttainableSeconds attainable_seconds_of(const Readings& readings) {
  AttainableSeconds seconds;
  const auto rate = readings.machine.product_gflops.find(readings.model.precision);
  if (rate == readings.machine.product_gflops.end() || !(rate->second > 0)) return seconds;
  const double all = readings.stretch.tokens * readings.model.flop_per_token / (1e9 * rate->second);
  seconds.attention = all * std::clamp(readings.model.attention_flop_share, 0.0, 1.0);
  seconds.head = all * std::clamp(readings.model.head_flop_share, 0.0, 1.0);
  seconds.linear = std::max(0.0, all - seconds.attention - seconds.head);
  seconds.optimizer = readings.attainable_update_seconds() * static_cast<double>(readings.stretch.steps);
  return seconds;
}

}  // namespace

Roofline roofline_of(const Readings& readings) {
  Roofline roofline;
  if (!is_measured(readings)) return roofline;
  roofline.attainable = readings.attainable_tokens_per_second();
  roofline.achieved = readings.stretch.tokens_per_second();
  if (!roofline.known()) return roofline;
  const Ledger::Totals& ledger = readings.stretch.ledger;
  roofline.seconds = ledger.seconds();
  const AttainableSeconds attainable = attainable_seconds_of(readings);
  std::array<bool, kPhases> taken{};
  const auto add = [&](std::string name, std::initializer_list<Phase> phases, double attainable_seconds) {
    Roofline::Part part{std::move(name), 0, attainable_seconds};
    for (const Phase phase : phases) {
      part.seconds += ledger.seconds(phase);
      taken[static_cast<size_t>(phase)] = true;
    }
    if (part.seconds > 0 || attainable_seconds > 0) roofline.parts.push_back(std::move(part));
  };
  add("linear layers", {Phase::forward_linear, Phase::backward_linear}, attainable.linear);
  add("attention", {Phase::forward_attention, Phase::backward_attention}, attainable.attention);
  add("output layer and loss", {Phase::loss}, attainable.head);
  add("optimizer", {Phase::optimizer}, attainable.optimizer);
  add("norms", {Phase::forward_norm, Phase::backward_norm}, 0);
  add("elementwise", {Phase::forward_elementwise, Phase::backward_elementwise}, 0);
  add("embedding", {Phase::forward_embedding, Phase::backward_embedding}, 0);
  for (int i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (!taken[static_cast<size_t>(i)]) add(phase_words(std::string(phase_name(phase))), {phase}, 0);
  }
  std::stable_sort(roofline.parts.begin(), roofline.parts.end(),
                   [](const auto& a, const auto& b) { return a.lost() > b.lost(); });
  return roofline;
}

namespace {

// The finding whose fix sets a key, and what it gained.
std::string why_changed(const Diagnosis& diagnosis, const std::string& key) {
  for (auto rung = diagnosis.ladder.rbegin(); rung != diagnosis.ladder.rend(); ++rung) {
    if (!rung->kept) continue;
    const std::string gain =
        fmt::format("{}: {}", rung->finding.empty() ? rung->step : rung->finding, gain_text(*rung));
    if (rung->fix.key == key) return gain;
    for (const auto& [follows, value] : rung->fix.also) {
      if (follows == key) return rung->fix.rule.empty() ? gain : rung->fix.rule;
    }
  }
  return {};
}

}  // namespace

std::vector<JobChange> changes_of(const Diagnosis& diagnosis) {
  Job written = diagnosis.written, tuned = diagnosis.tuned;
  const std::vector<Option> before = declare_job_options(written), after = declare_job_options(tuned);
  std::vector<JobChange> changes;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const std::string& key = before[i].path;
    if (key == "name" || key == "output" || key == "comment") continue;
    if (std::string old = before[i].value_text(), now = after[i].value_text(); old != now) {
      changes.push_back({key, std::move(old), std::move(now), why_changed(diagnosis, key)});
    }
  }
  return changes;
}

const Rung* tuned_rung(const Diagnosis& diagnosis) {
  const Rung* last = diagnosis.ladder.empty() ? nullptr : &diagnosis.ladder.front();
  for (const Rung& rung : diagnosis.ladder) last = rung.kept ? &rung : last;
  return last;
}

int64_t kept_changes(const Diagnosis& diagnosis) {
  if (diagnosis.ladder.empty()) return 0;
  return std::count_if(diagnosis.ladder.begin() + 1, diagnosis.ladder.end(),
                       [](const Rung& rung) { return rung.kept; });
}

bool is_uneventful(const Diagnosis& diagnosis) {
  return diagnosis.findings.empty() && diagnosis.ladder.size() <= 1 && diagnosis.not_measured.empty() &&
         !diagnosis.interrupted;
}

std::vector<std::string> missing_parts(const Diagnosis& diagnosis) {
  if (!diagnosis.interrupted) return {};
  std::vector<std::string> missing;
  if (!diagnosis.before.vital_signs.measured) missing.emplace_back("the vital signs");
  if (!is_measured(diagnosis.before)) missing.emplace_back("where the time goes");
  if (diagnosis.ladder.empty()) missing.emplace_back("the speed of the job as written");
  if (!diagnosis.not_measured.empty()) {
    missing.push_back(plural(std::ssize(diagnosis.not_measured), "fix", "fixes") + " that were not tried");
  } else if (diagnosis.ladder.size() <= 1) {
    missing.emplace_back("the fixes, none of which was tried");
  }
  return missing;
}

std::string machine_text(const Readings& readings) {
  const MachineReadings& machine = readings.machine;
  std::string text = machine.cpu_model.empty() ? "processor not known" : machine.cpu_model;
  text += fmt::format(", {} of {}", machine.cores, plural(machine.logical_processors, "logical processor"));
  if (machine.quota_cores > 0) text += fmt::format(" (quota: {:g})", machine.quota_cores);
  if (!machine.isa.empty()) text += ", " + machine.isa;
  if (machine.memory_total_bytes > 0) {
    text += ", " + format_bytes(static_cast<double>(machine.memory_total_bytes)) + " of memory";
  }
  if (!machine.gpus.empty()) return text + fmt::format(", {}", fmt::join(machine.gpus, ", "));
  if (machine.no_gpu.empty()) return text;
  return text + (machine.no_gpu.starts_with("no ") ? ", " : ", no GPU: ") + machine.no_gpu;
}

std::string fix_text(const Fix& fix) {
  if (!fix.is_setting()) return fix.advice;
  std::string text = fmt::format("\"{}\": {}", fix.key, fix.value);
  for (const auto& [key, value] : fix.also) text += fmt::format(", \"{}\": {}", key, value);
  return text;
}

std::string sameness_text(const Finding& finding) {
  const std::string text(sameness_text(finding.sameness));
  return finding.sameness == Sameness::changes_maths && !finding.change.empty() ? text + ": " + finding.change : text;
}

std::string gain_text(double gain) { return gain > 0 && std::isfinite(gain) ? fmt::format("{:.2f}x", gain) : "–"; }

std::string gain_text(const Rung& rung) {
  const bool has_interval =
      std::isfinite(rung.gain_low) && std::isfinite(rung.gain_high) && rung.gain_low < rung.gain_high;
  if (!is_measured(rung) || !has_interval) return is_measured(rung) ? gain_text(rung.gain) : "–";
  return fmt::format("{} [{:.2f}, {:.2f}]", gain_text(rung.gain), rung.gain_low, rung.gain_high);
}

std::string proof_text(const Rung& rung) {
  const StepProof& proof = rung.proof;
  if (!proof.measured) return "not compared";
  if (proof.same_bits) return fmt::format("same bits: the loss and {}", plural(proof.tensors, "gradient"));
  std::string text = fmt::format("loss {:.6g} against {:.6g}, gradient off by {:.1e} ({:.0e} allowed)", proof.loss,
                                 proof.other_loss, proof.difference, proof.allowed);
  if (!proof.worst_tensor.empty()) {
    text += fmt::format(", the worst of {} by {:.1e}: {}", proof.tensors, proof.worst_difference, proof.worst_tensor);
  }
  return (proof.holds ? "same maths: " : "not the same maths: ") + text;
}

std::vector<std::string> remarks_of(const Diagnosis& diagnosis, const Rung& rung) {
  if (&rung == &diagnosis.ladder.front()) return {};
  std::vector<std::string> remarks;
  if (!rung.kept) remarks.push_back(fmt::format("not kept: {}", rung.verdict));
  if (rung.kept && rung.proof.measured) remarks.push_back(proof_text(rung));
  if (rung.kept && !rung.proof.measured) {
    remarks.emplace_back(rung.sameness == Sameness::changes_maths ? "changes the maths"
                                                                  : "the result was not compared");
  }
  if (!rung.interleaved) remarks.emplace_back("measured one after the other, as both do not fit into the memory");
  return remarks;
}

std::string rows_text(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  if (!(stretch.rows > 0) || !(stretch.seconds > 0)) return {};
  const double padding = std::max(0.0, 1 - stretch.tokens / stretch.rows);
  return fmt::format("{} rows/s computed, {} of them padding", format_count(stretch.rows / stretch.seconds),
                     padding > 0 ? words::percent(padding) : "none");
}

namespace {

void add_gpu_resources(const GpuReadings& gpu, std::vector<std::pair<std::string, std::string>>& all) {
  if (gpu.name.empty()) return;
  const auto add = [&](const char* name, double value, const auto& words_of) {
    if (value >= 0) all.emplace_back(name, words_of(value));
  };
  const auto of_most = [](double most, const char* unit) {
    return [most, unit](double value) {
      return most > 0 ? fmt::format("{:.0f} of {:.0f} {}", value, most, unit) : fmt::format("{:.0f} {}", value, unit);
    };
  };
  add("GPU busy", gpu.busy_share, words::percent);
  add("gaps between kernels", gpu.idle_share, words::percent);
  add("copies nothing overlapped", gpu.copy_share, words::percent);
  add("kernels a step", gpu.kernels_per_step, words::exact);
  add("products on tensor cores", gpu.tensor_core_share, words::percent);
  add("GPU clock", gpu.sm_mhz, of_most(gpu.max_sm_mhz, "MHz"));
  add("GPU power", gpu.watts, of_most(gpu.watt_limit, "W"));
  add("GPU temperature", gpu.celsius, of_most(0, "°C"));
  for (const auto& [reason, share] : gpu.throttled) {
    if (share > 0) all.emplace_back("throttled: " + reason, words::percent(share));
  }
  add("GPU memory used", static_cast<double>(gpu.memory_used_bytes), words::bytes);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> resources_of(const Readings& readings) {
  std::vector<std::pair<std::string, std::string>> all;
  if (!is_measured(readings)) return all;
  const StretchReadings& stretch = readings.stretch;
  const auto processors = [&](double seconds) { return fmt::format("{:.2f}", seconds / stretch.seconds); };
  all.emplace_back("processors busy", processors(stretch.user_seconds + stretch.system_seconds) +
                                          fmt::format(" with {}", plural(stretch.threads, "thread")));
  if (stretch.other_seconds >= 0) all.emplace_back("busy for others", processors(stretch.other_seconds));
  if (stretch.peak_memory_bytes > 0) {
    all.emplace_back("peak memory", format_bytes(static_cast<double>(stretch.peak_memory_bytes)));
  }
  all.emplace_back("page faults",
                   fmt::format("{}, {} from disk", words::exact(static_cast<double>(stretch.minor_faults)),
                               words::exact(static_cast<double>(stretch.major_faults))));
  if (stretch.swapped_bytes >= 0) all.emplace_back("in swap", format_bytes(static_cast<double>(stretch.swapped_bytes)));
  if (stretch.throttled_seconds >= 0) {
    all.emplace_back("kept off by the quota", words::percent(stretch.throttled_seconds / stretch.seconds));
  }
  if (stretch.disk_wait_seconds >= 0) {
    all.emplace_back("waiting for a disk", words::percent(stretch.disk_wait_seconds / stretch.seconds));
  }
  add_gpu_resources(stretch.gpu, all);
  return all;
}

std::string lengths_text(const DataReadings& data) {
  std::string text = fmt::format(
      "{} sequences of {:.1f} tokens on average; half have up to {}, 90 % up to {}, 99 % up to "
      "{}, the longest {}.",
      words::exact(static_cast<double>(data.sequences)), data.mean, data.median, data.p90, data.p99, data.longest);
  if (data.cut > 0) text += fmt::format(" {} are longer than max_length and lose their end.", plural(data.cut, "text"));
  return text;
}

std::string side_text(const Verification::Side& side) {
  const std::string interval =
      side.low < side.high ? fmt::format(" (95 %: {:.4g} to {:.4g})", side.low, side.high) : "";
  return fmt::format("{} {:.4g}{}", side.metric, side.value, interval);
}

std::string apply_command(const Diagnosis& diagnosis) {
  if (diagnosis.command.empty() || diagnosis.command.find(" --apply") != std::string::npos) return diagnosis.command;
  return diagnosis.command + " --apply FAST.json";
}

namespace {

std::string tensors_text(int64_t count, int64_t all, const std::vector<std::string>& others) {
  std::string text = fmt::format("{} of {}", count, plural(all, "tensor"));
  if (!others.empty()) text += fmt::format("; not {}", fmt::join(others, ", "));
  return text;
}

// A new model knows nothing: its first loss is that of a guess. One that starts far from it has a bug, or is not new.
Check first_loss_check(const Readings& readings) {
  const VitalSigns& signs = readings.vital_signs;
  constexpr double kNear = 0.1;
  const std::string what = "the first loss is that of a guess";
  if (signs.expected_first_loss < 0) {
    return unknown_check(what,
                         fmt::format("{}; nothing is expected of a model that was trained before, or whose logits do "
                                     "not start near 0",
                                     words::loss(known(signs.first_loss))));
  }
  const bool near = std::abs(signs.first_loss - signs.expected_first_loss) <= kNear * signs.expected_first_loss + kNear;
  return check(what, near,
               fmt::format("{}, ln {:.0f} is {}", words::loss(known(signs.first_loss)),
                           std::exp(signs.expected_first_loss), words::loss(signs.expected_first_loss)));
}

}  // namespace

std::vector<Check> vital_checks(const Readings& readings) {
  const VitalSigns& signs = readings.vital_signs;
  if (!signs.measured) return {};
  std::vector<Check> checks = {
      check("all trained tensors change", signs.tensors_changed == signs.tensors,
            tensors_text(signs.tensors_changed, signs.tensors, signs.unchanged)),
      check("gradients reach every trained tensor", signs.tensors_with_gradient == signs.tensors,
            tensors_text(signs.tensors_with_gradient, signs.tensors, signs.without_gradient)),
      check("the loss is finite", signs.loss_finite, signs.loss_finite ? "at every step" : "NaN or infinite"),
      check("the loss falls", signs.loss_falling,
            fmt::format("from {} to {} in {}", words::loss(known(signs.first_loss)),
                        words::loss(known(signs.last_loss)), plural(readings.stretch.steps, "step"))),
      first_loss_check(readings)};
  if (const double forwards = known(signs.forwards_per_step); std::isfinite(forwards)) {
    checks.push_back(check("one forward pass a step", std::abs(forwards - 1) < 0.01, fmt::format("{:.2f}", forwards)));
  }
  if (const double share = known(signs.target_share); std::isfinite(share)) {
    checks.push_back(check("tokens have targets", share > 0, words::percent(share) + " of them"));
  }
  return checks;
}

namespace {

Check peak_memory_check(const Diagnosis& diagnosis) {
  const std::string what = "nothing out of memory";
  const Readings& readings = diagnosis.before;
  int64_t peak = readings.stretch.peak_memory_bytes;
  for (const Rung& rung : diagnosis.ladder) peak = std::max(peak, rung.peak_memory_bytes);
  if (peak <= 0) return unknown_check(what, "the peak is not known");
  const bool on_gpu = !readings.stretch.gpu.name.empty();
  const int64_t all = on_gpu ? readings.stretch.gpu.memory_bytes : readings.machine.memory_total_bytes;
  std::string numbers = fmt::format("peak {}", format_bytes(static_cast<double>(peak)));
  if (all <= 0) return check(what, true, numbers);
  numbers += fmt::format(" of {}{}", format_bytes(static_cast<double>(all)), on_gpu ? " on the GPU" : "");
  return check(what, peak <= all, numbers);
}

std::vector<Check> gpu_checks(const Readings& readings) {
  const GpuReadings& gpu = readings.stretch.gpu;
  if (gpu.name.empty()) return {};
  constexpr double kBusy = 0.9;
  std::string numbers = fmt::format("{}: busy {} of the time", gpu.name, words::percent(known(gpu.busy_share)));
  if (gpu.memory_used_bytes >= 0) {
    numbers += fmt::format(", {} of {} of memory used", format_bytes(static_cast<double>(gpu.memory_used_bytes)),
                           words::bytes(known(static_cast<double>(gpu.memory_bytes))));
  }
  if (gpu.busy_share < 0) return {unknown_check("the GPU has work", numbers)};
  return {check("the GPU has work", gpu.busy_share >= kBusy, numbers)};
}

// Of the changes that are said to keep the maths, each must be proven; one that changes it can only be told.
std::vector<Check> proof_checks(const Diagnosis& diagnosis) {
  const int64_t kept = kept_changes(diagnosis);
  if (kept == 0) return {};
  int64_t proven = 0, claimed = 0;
  std::vector<std::string> changed;
  for (size_t i = 1; i < diagnosis.ladder.size(); ++i) {
    const Rung& rung = diagnosis.ladder[i];
    if (!rung.kept) continue;
    if (rung.proof.measured && rung.proof.holds) ++proven;
    if (rung.sameness == Sameness::changes_maths) {
      changed.push_back(rung.step);
    } else {
      ++claimed;
    }
  }
  std::string numbers = fmt::format("for {} of {} kept", proven, plural(kept, "change"));
  if (changed.empty()) return {check("the same maths is proven", proven == kept, numbers)};
  numbers += fmt::format("; changed on purpose by {}", fmt::join(changed, ", "));
  if (proven >= claimed) return {unknown_check("the same maths is proven", numbers)};
  return {check("the same maths is proven", false, numbers)};
}

}  // namespace

std::vector<Check> diagnosis_checks(const Diagnosis& diagnosis) {
  const Readings& readings =
      kept_changes(diagnosis) > 0 && is_measured(diagnosis.after) ? diagnosis.after : diagnosis.before;
  if (!is_measured(diagnosis.before) && diagnosis.ladder.empty()) return {};
  std::vector<Check> checks = vital_checks(readings.vital_signs.measured ? readings : diagnosis.before);
  const auto add = [&](std::vector<Check> more) { checks.insert(checks.end(), more.begin(), more.end()); };
  add({peak_memory_check(diagnosis)});
  if (const int64_t swapped = readings.stretch.swapped_bytes; swapped >= 0) {
    add({check("nothing in swap", swapped == 0, format_bytes(static_cast<double>(swapped)))});
  }
  add(gpu_checks(readings));
  add(proof_checks(diagnosis));
  if (diagnosis.verification) {
    const Verification& both = *diagnosis.verification;
    add({check("the quality is the same", both.same_quality,
               fmt::format("{} before, {} after", side_text(both.before), side_text(both.after)))});
  }
  return checks;
}

}  // namespace brisk
