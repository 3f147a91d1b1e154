#include "doctor/show/diagnosis_json.h"

#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "doctor/show/diagnosis_facts.h"
#include "doctor/show/json_values.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

// The value of a job's key, which is JSON.
Json json_of_value(const std::string& text) {
  const Json value = parse_json_or_discard(text);
  return value.is_discarded() ? Json(text) : value;
}

Json json_of_numbers(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = finite_or_null(value);
  return json;
}

Json json_of_ledger(const Readings& readings) {
  if (!is_measured(readings)) return {};
  Json phases = Json::array();
  for (const PhaseShare& phase : shares_of(readings.stretch.ledger)) {
    phases.push_back({{"phase", phase.phase}, {"seconds", phase.seconds}, {"share", phase.share}});
  }
  return {{"seconds", readings.stretch.ledger.seconds()}, {"steps", readings.stretch.steps}, {"phases", phases}};
}

Json json_of_roofline(const Readings& readings) {
  const Roofline roofline = roofline_of(readings);
  if (!roofline.known()) return {};
  Json parts = Json::array();
  for (const Roofline::Part& part : roofline.parts) {
    parts.push_back({{"part", part.name},
                     {"seconds", part.seconds},
                     {"attainable_seconds", part.attainable_seconds},
                     {"lost_seconds", part.lost()}});
  }
  return {{"attainable_tokens_per_second", roofline.attainable},
          {"tokens_per_second", roofline.achieved},
          {"share", roofline.share()},
          {"parts", parts}};
}

Json json_of_gpu(const GpuReadings& gpu) {
  if (gpu.name.empty()) return {};
  return {{"name", gpu.name},
          {"busy_share", from_zero_or_null(gpu.busy_share)},
          {"idle_share", from_zero_or_null(gpu.idle_share)},
          {"copy_share", from_zero_or_null(gpu.copy_share)},
          {"kernels_per_step", from_zero_or_null(gpu.kernels_per_step)},
          {"tensor_core_share", from_zero_or_null(gpu.tensor_core_share)},
          {"sm_mhz", from_zero_or_null(gpu.sm_mhz)},
          {"max_sm_mhz", from_zero_or_null(gpu.max_sm_mhz)},
          {"watts", from_zero_or_null(gpu.watts)},
          {"watt_limit", from_zero_or_null(gpu.watt_limit)},
          {"celsius", from_zero_or_null(gpu.celsius)},
          {"throttled", json_of_numbers(gpu.throttled)},
          {"memory_used_bytes", whole_or_null(gpu.memory_used_bytes)},
          {"memory_bytes", whole_or_null(gpu.memory_bytes)}};
}

Json json_of_stretch(const Readings& readings) {
  if (!is_measured(readings)) return {};
  const StretchReadings& stretch = readings.stretch;
  return {{"steps", stretch.steps},
          {"sequences", stretch.sequences},
          {"tokens", finite_or_null(stretch.tokens)},
          {"rows", finite_or_null(stretch.rows)},
          {"seconds", finite_or_null(stretch.seconds)},
          {"tokens_per_second", finite_or_null(stretch.tokens_per_second())},
          {"computed_rows_per_second", finite_or_null(stretch.rows / stretch.seconds)},
          {"padding_share", stretch.rows > 0 ? finite_or_null(1 - stretch.tokens / stretch.rows) : Json()},
          {"median_step_seconds", above_zero_or_null(stretch.median_step_seconds)},
          {"epoch_seconds", above_zero_or_null(readings.epoch_seconds())},
          {"threads", stretch.threads},
          {"processors_busy", finite_or_null((stretch.user_seconds + stretch.system_seconds) / stretch.seconds)},
          {"minor_faults", stretch.minor_faults},
          {"major_faults", stretch.major_faults},
          {"swapped_bytes", whole_or_null(stretch.swapped_bytes)},
          {"throttled_seconds", from_zero_or_null(stretch.throttled_seconds)},
          {"disk_wait_seconds", from_zero_or_null(stretch.disk_wait_seconds)},
          {"peak_memory_bytes", whole_above_zero_or_null(stretch.peak_memory_bytes)},
          {"planned_memory_bytes", whole_above_zero_or_null(stretch.planned_memory_bytes)},
          {"gpu", json_of_gpu(stretch.gpu)}};
}

Json json_of_vital_signs(const VitalSigns& signs) {
  return {{"measured", signs.measured},
          {"tensors", signs.tensors},
          {"tensors_changed", signs.tensors_changed},
          {"tensors_with_gradient", signs.tensors_with_gradient},
          {"unchanged", signs.unchanged},
          {"without_gradient", signs.without_gradient},
          {"first_loss", from_zero_or_null(signs.first_loss)},
          {"expected_first_loss", from_zero_or_null(signs.expected_first_loss)},
          {"last_loss", from_zero_or_null(signs.last_loss)},
          {"loss_finite", signs.loss_finite},
          {"loss_falling", signs.loss_falling},
          {"forwards_per_step", from_zero_or_null(signs.forwards_per_step)},
          {"target_share", from_zero_or_null(signs.target_share)},
          {"examples", signs.examples}};
}

Json json_of_fix(const Fix& fix) {
  Json also = Json::array();
  for (const auto& [key, value] : fix.also) also.push_back({{"key", key}, {"value", json_of_value(value)}});
  return {{"key", fix.is_setting() ? Json(fix.key) : Json()},
          {"value", fix.is_setting() ? json_of_value(fix.value) : Json()},
          {"advice", fix.advice},
          {"also", also},
          {"rule", fix.rule},
          {"processes", whole_above_zero_or_null(fix.processes)}};
}

Json json_of_finding(const Finding& finding) {
  Json evidence = Json::array();
  for (const Evidence& each : finding.evidence) {
    evidence.push_back({{"name", each.name}, {"value", each.value}, {"note", each.note}});
  }
  return {{"id", finding.id},
          {"evidence", evidence},
          {"cause", finding.cause},
          {"fix", finding.fix ? json_of_fix(*finding.fix) : Json()},
          {"predicted_gain", finite_or_null(finding.predicted_gain)},
          {"same_maths", sameness_name(finding.sameness)},
          {"change", finding.change},
          {"is_quality", finding.is_quality}};
}

Json json_of_proof(const StepProof& proof) {
  if (!proof.measured) return {};
  return {{"same_bits", proof.same_bits},
          {"holds", proof.holds},
          {"loss", finite_or_null(proof.loss)},
          {"other_loss", finite_or_null(proof.other_loss)},
          {"difference", finite_or_null(proof.difference)},
          {"worst_difference", finite_or_null(proof.worst_difference)},
          {"worst_tensor", proof.worst_tensor},
          {"allowed", finite_or_null(proof.allowed)},
          {"tensors", proof.tensors}};
}

Json json_of_rung(const Rung& rung) {
  const bool measured = is_measured(rung);
  const auto if_measured = [&](double value) { return measured ? finite_or_null(value) : Json(); };
  return {{"step", rung.step},
          {"finding", rung.finding.empty() ? Json() : Json(rung.finding)},
          {"key", rung.fix.is_setting() ? Json(rung.fix.key) : Json()},
          {"value", rung.fix.is_setting() ? json_of_value(rung.fix.value) : Json()},
          {"also", json_of_fix(rung.fix)["also"]},
          {"processes", whole_above_zero_or_null(rung.fix.processes)},
          {"same_maths", sameness_name(rung.sameness)},
          {"tokens_per_second", above_zero_or_null(rung.tokens_per_second)},
          {"rows_per_second", above_zero_or_null(rung.rows_per_second)},
          {"gain", if_measured(rung.gain)},
          {"gain_low", if_measured(rung.gain_low)},
          {"gain_high", if_measured(rung.gain_high)},
          {"pairs", rung.pairs},
          {"interleaved", rung.interleaved},
          {"cumulative", if_measured(rung.cumulative)},
          {"utilisation", above_zero_or_null(rung.utilisation)},
          {"epoch_seconds", above_zero_or_null(rung.epoch_seconds)},
          {"predicted_gain", finite_or_null(rung.predicted_gain)},
          {"peak_memory_bytes", whole_above_zero_or_null(rung.peak_memory_bytes)},
          {"loss", from_zero_or_null(rung.loss)},
          {"loss_spread", from_zero_or_null(rung.loss_spread)},
          {"loss_tokens", above_zero_or_null(rung.loss_tokens)},
          {"kept", rung.kept},
          {"verdict", rung.verdict},
          {"proof", json_of_proof(rung.proof)}};
}

Json json_of_curve(const std::vector<CurvePoint>& curve, const char* x_name) {
  Json points = Json::array();
  for (const CurvePoint& point : curve) {
    points.push_back({{x_name, finite_or_null(point.x)},
                      {"tokens_per_second", above_zero_or_null(point.tokens_per_second)},
                      {"loss", from_zero_or_null(point.loss)},
                      {"memory_bytes", whole_or_null(point.memory_bytes)}});
  }
  return points;
}

Json json_of_lengths(const DataReadings& data) {
  if (data.sequences <= 0) return {};
  Json buckets = Json::array();
  for (const DataReadings::Bucket& bucket : data.lengths) {
    buckets.push_back({{"first", bucket.first}, {"last", bucket.last}, {"sequences", bucket.sequences}});
  }
  return {{"sequences", data.sequences},
          {"tokens", finite_or_null(data.tokens)},
          {"mean", finite_or_null(data.mean)},
          {"median", data.median},
          {"p90", data.p90},
          {"p99", data.p99},
          {"longest", data.longest},
          {"cut", whole_or_null(data.cut)},
          {"buckets", buckets}};
}

Json json_of_machine(const MachineReadings& machine) {
  return {{"cpu_model", machine.cpu_model},
          {"isa", machine.isa},
          {"cores", machine.cores},
          {"logical_processors", machine.logical_processors},
          {"quota_cores", from_zero_or_null(machine.quota_cores)},
          {"memory_total_bytes", whole_or_null(machine.memory_total_bytes)},
          {"memory_available_bytes", whole_or_null(machine.memory_available_bytes)},
          {"peak_gflops", json_of_numbers(machine.peak_gflops)},
          {"product_gflops", json_of_numbers(machine.product_gflops)},
          {"memory_gb_per_second", from_zero_or_null(machine.memory_gb_per_second)},
          {"gpus", machine.gpus},
          {"no_gpu", machine.no_gpu}};
}

Json json_of_side(const Verification::Side& side) {
  const bool has_interval = side.low < side.high;
  return {{"run", side.run},
          {"seconds", above_zero_or_null(side.seconds)},
          {"seconds_per_epoch", above_zero_or_null(side.seconds_per_epoch)},
          {"tokens_per_second", above_zero_or_null(side.tokens_per_second)},
          {"metric", side.metric},
          {"value", finite_or_null(side.value)},
          {"low", has_interval ? finite_or_null(side.low) : Json()},
          {"high", has_interval ? finite_or_null(side.high) : Json()}};
}

Json json_of_verification(const Diagnosis& diagnosis) {
  if (!diagnosis.verification) return {};
  const Verification& both = *diagnosis.verification;
  return {{"before", json_of_side(both.before)},
          {"after", json_of_side(both.after)},
          {"same_quality", both.same_quality},
          {"verdict", both.verdict}};
}

// As --apply writes it; where that text is missing, with every key.
Json json_of_job(const Diagnosis& diagnosis) {
  Json job = parse_json_or_discard(diagnosis.tuned_text);
  if (job.is_object()) return job;
  job = parse_json_or_discard(job_to_json_text(diagnosis.tuned));
  return job.is_object() ? job : Json::object();
}

Json json_of_changes(const Diagnosis& diagnosis) {
  Json changes = Json::array();
  for (const JobChange& change : changes_of(diagnosis)) {
    changes.push_back({{"key", change.key},
                       {"before", json_of_value(change.before)},
                       {"after", json_of_value(change.after)},
                       {"why", change.why}});
  }
  return changes;
}

template <typename Values, typename ToJson>
Json json_of_each(const Values& values, const ToJson& to_json) {
  Json all = Json::array();
  for (const auto& value : values) all.push_back(to_json(value));
  return all;
}

}  // namespace

std::string diagnosis_json(const Diagnosis& diagnosis) {
  const Readings &before = diagnosis.before, &after = diagnosis.after;
  const auto unmeasured = [](const NotMeasured& each) {
    return Json{{"step", each.step}, {"predicted_gain", finite_or_null(each.predicted_gain)}, {"reason", each.reason}};
  };
  const Json json = {{"summary", diagnosis.summary()},
                     {"name", diagnosis.job_name},
                     {"path", diagnosis.job_path},
                     {"command", diagnosis.command},
                     {"baseline", diagnosis.naive ? "naive" : "as written"},
                     {"budget_seconds", above_zero_or_null(diagnosis.budget_seconds)},
                     {"seconds", above_zero_or_null(diagnosis.seconds)},
                     {"interrupted", diagnosis.interrupted},
                     {"missing", missing_parts(diagnosis)},
                     {"notes", diagnosis.notes},
                     {"machine", json_of_machine(before.machine)},
                     {"vital_signs", json_of_vital_signs(before.vital_signs)},
                     {"measured", {{"before", json_of_stretch(before)}, {"after", json_of_stretch(after)}}},
                     {"ledger", {{"before", json_of_ledger(before)}, {"after", json_of_ledger(after)}}},
                     {"roofline", {{"before", json_of_roofline(before)}, {"after", json_of_roofline(after)}}},
                     {"batch_curve", json_of_curve(before.batch_curve, "sequences")},
                     {"thread_curve", json_of_curve(before.thread_curve, "threads")},
                     {"process_curve", json_of_curve(before.process_curve, "processes")},
                     {"rate_curve", json_of_curve(before.rate_curve, "factor")},
                     {"lengths", json_of_lengths(before.data)},
                     {"findings", json_of_each(diagnosis.findings, json_of_finding)},
                     {"ladder", json_of_each(diagnosis.ladder, json_of_rung)},
                     {"not_measured", json_of_each(diagnosis.not_measured, unmeasured)},
                     {"changes", json_of_changes(diagnosis)},
                     {"verification", json_of_verification(diagnosis)},
                     {"job", json_of_job(diagnosis)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace brisk
