// The JSON schema of a diagnosis. Every key is always there; what is not known is null.
#include <nlohmann/json.hpp>

#include "base/ledger.h"
#include "doctor/judge/finding.h"
#include "doctor/show/diagnosis_json.h"
#include "doctor/show/schema_parts.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

Json schema_of_sameness() {
  Json names = Json::array();
  for (const Sameness sameness : {Sameness::same_bits, Sameness::same_maths, Sameness::changes_maths}) {
    names.push_back(sameness_name(sameness));
  }
  return {{"type", "string"}, {"enum", names}};
}

Json schema_of_both(const Json& schema) {
  return schema_of_object({{"before", schema_or_null(schema)}, {"after", schema_or_null(schema)}});
}

Json schema_of_ledger() {
  Json names = Json::array();
  for (int i = 0; i < kPhases; ++i) names.push_back(phase_name(static_cast<Phase>(i)));
  const Json phase =
      schema_of_object({{"phase", {{"type", "string"}, {"enum", names}}},
                        {"seconds", schema_from_zero("number")},
                        {"share", schema_with_words(schema_from_zero("number"), "percent; of all phases: 100")}});
  return schema_of_both(schema_of_object(
      {{"seconds", schema_from_zero("number")}, {"steps", schema_of_count()}, {"phases", schema_of_list(phase)}}));
}

Json schema_of_roofline() {
  const Json part = schema_of_object({{"part", schema_of_text()},
                                      {"seconds", schema_from_zero("number")},
                                      {"attainable_seconds", schema_from_zero("number")},
                                      {"lost_seconds", schema_of_number()}});
  return schema_of_both(
      schema_of_object({{"attainable_tokens_per_second", schema_from_zero("number")},
                        {"tokens_per_second", schema_from_zero("number")},
                        {"share", schema_with_words(schema_from_zero("number"), "of the attainable tokens/s, 1: all")},
                        {"parts", schema_of_list(part)}}));
}

Json schema_of_vital_signs() {
  return schema_of_object({{"measured", schema_of_flag()},
                           {"tensors", schema_of_count()},
                           {"tensors_changed", schema_of_count()},
                           {"tensors_with_gradient", schema_of_count()},
                           {"unchanged", schema_of_texts()},
                           {"without_gradient", schema_of_texts()},
                           {"first_loss", schema_of_measure()},
                           {"expected_first_loss", schema_of_measure()},
                           {"last_loss", schema_of_measure()},
                           {"loss_finite", schema_of_flag()},
                           {"loss_falling", schema_of_flag()},
                           {"forwards_per_step", schema_of_measure()},
                           {"target_share", schema_of_measure()},
                           {"examples", schema_of_texts()}});
}

Json schema_of_stretch() {
  const Json gpu = schema_of_object(
      {{"name", schema_of_text()}, {"busy_share", schema_of_measure()}, {"memory_used_bytes", schema_of_bytes()}});
  return schema_of_both(schema_of_object({{"steps", schema_of_count()},
                                          {"tokens", schema_of_measure()},
                                          {"rows", schema_of_measure()},
                                          {"seconds", schema_of_measure()},
                                          {"tokens_per_second", schema_of_measure()},
                                          {"computed_rows_per_second", schema_of_measure()},
                                          {"padding_share", schema_of_number_or_null()},
                                          {"epoch_seconds", schema_of_measure()},
                                          {"threads", schema_of_count()},
                                          {"processors_busy", schema_of_measure()},
                                          {"swapped_bytes", schema_of_bytes()},
                                          {"throttled_seconds", schema_of_measure()},
                                          {"disk_wait_seconds", schema_of_measure()},
                                          {"peak_memory_bytes", schema_of_bytes()},
                                          {"gpu", schema_or_null(gpu)}}));
}

Json schema_of_keys_and_values() {
  return schema_of_list(schema_of_object({{"key", schema_of_text()}, {"value", schema_of_anything()}}));
}

Json schema_of_finding() {
  const Json evidence =
      schema_of_object({{"name", schema_of_text()}, {"value", schema_of_text()}, {"note", schema_of_text()}});
  const Json fix = schema_of_object({{"key", schema_of_text_or_null()},
                                     {"value", schema_of_anything()},
                                     {"advice", schema_of_text()},
                                     {"also", schema_of_keys_and_values()},
                                     {"rule", schema_of_text()},
                                     {"processes", schema_or_null(schema_of_count())}});
  return schema_of_object({{"id", schema_of_text()},
                           {"evidence", schema_of_list(evidence)},
                           {"cause", schema_of_text()},
                           {"fix", schema_or_null(fix)},
                           {"predicted_gain", schema_of_number_or_null()},
                           {"same_maths", schema_of_sameness()},
                           {"change", schema_of_text()},
                           {"is_quality", schema_of_flag()}});
}

Json schema_of_rung() {
  const Json proof = schema_of_object({{"same_bits", schema_of_flag()},
                                       {"holds", schema_of_flag()},
                                       {"loss", schema_of_number_or_null()},
                                       {"other_loss", schema_of_number_or_null()},
                                       {"difference", schema_of_measure()},
                                       {"worst_difference", schema_of_measure()},
                                       {"worst_tensor", schema_of_text()},
                                       {"allowed", schema_of_measure()},
                                       {"tensors", schema_of_count()}});
  return schema_of_object(
      {{"step", schema_of_text()},
       {"finding", schema_of_text_or_null()},
       {"key", schema_of_text_or_null()},
       {"value", schema_of_anything()},
       {"also", schema_of_keys_and_values()},
       {"processes", schema_or_null(schema_of_count())},
       {"same_maths", schema_of_sameness()},
       {"tokens_per_second", schema_with_words(schema_of_measure(), "padding not counted")},
       {"rows_per_second", schema_with_words(schema_of_measure(), "sequences")},
       {"gain", schema_with_words(schema_of_measure(), "over the last rung that was kept")},
       {"gain_low", schema_of_measure()},
       {"gain_high", schema_of_measure()},
       {"pairs", schema_of_count()},
       {"interleaved", schema_of_flag()},
       {"cumulative", schema_with_words(schema_of_measure(), "over the first rung")},
       {"utilisation", schema_of_measure()},
       {"epoch_seconds", schema_of_measure()},
       {"predicted_gain", schema_of_number_or_null()},
       {"peak_memory_bytes", schema_of_bytes()},
       {"loss", schema_of_measure()},
       {"loss_spread", schema_with_words(schema_of_measure(), "standard deviation of repeated runs")},
       {"loss_tokens", schema_of_measure()},
       {"kept", schema_of_flag()},
       {"verdict", schema_of_text()},
       {"proof", schema_or_null(proof)}});
}

Json schema_of_curve(const char* x_name) {
  return schema_of_list(schema_of_object({{x_name, schema_of_number_or_null()},
                                          {"tokens_per_second", schema_of_measure()},
                                          {"loss", schema_of_measure()},
                                          {"memory_bytes", schema_of_bytes()}}));
}

Json schema_of_lengths() {
  const Json bucket =
      schema_of_object({{"first", schema_of_count()}, {"last", schema_of_count()}, {"sequences", schema_of_count()}});
  return schema_or_null(schema_of_object({{"sequences", schema_of_count()},
                                          {"tokens", schema_of_measure()},
                                          {"mean", schema_of_measure()},
                                          {"median", schema_of_count()},
                                          {"p90", schema_of_count()},
                                          {"p99", schema_of_count()},
                                          {"longest", schema_of_count()},
                                          {"cut", schema_of_bytes()},
                                          {"buckets", schema_of_list(bucket)}}));
}

Json schema_of_machine() {
  return schema_of_object({{"cpu_model", schema_of_text()},
                           {"isa", schema_of_text()},
                           {"cores", schema_of_count()},
                           {"logical_processors", schema_of_count()},
                           {"quota_cores", schema_of_measure()},
                           {"memory_total_bytes", schema_of_bytes()},
                           {"memory_available_bytes", schema_of_bytes()},
                           {"peak_gflops", schema_of_type("object")},
                           {"product_gflops", schema_of_type("object")},
                           {"memory_gb_per_second", schema_of_measure()},
                           {"gpus", schema_of_texts()},
                           {"no_gpu", schema_of_text()}});
}

Json schema_of_verification() {
  const Json side = schema_of_object({{"run", schema_of_text()},
                                      {"seconds", schema_of_measure()},
                                      {"seconds_per_epoch", schema_of_measure()},
                                      {"tokens_per_second", schema_of_measure()},
                                      {"metric", schema_of_text()},
                                      {"value", schema_of_number_or_null()},
                                      {"low", schema_of_number_or_null()},
                                      {"high", schema_of_number_or_null()}});
  return schema_or_null(schema_of_object(
      {{"before", side}, {"after", side}, {"same_quality", schema_of_flag()}, {"verdict", schema_of_text()}}));
}

}  // namespace

std::string diagnosis_schema() {
  const Json not_measured = schema_of_object(
      {{"step", schema_of_text()}, {"predicted_gain", schema_of_number_or_null()}, {"reason", schema_of_text()}});
  const Json change = schema_of_object({{"key", schema_of_text()},
                                        {"before", schema_of_anything()},
                                        {"after", schema_of_anything()},
                                        {"why", schema_of_text()}});
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "What brisk doctor --json writes"}};
  schema.update(
      schema_of_object({{"summary", schema_of_text()},
                        {"name", schema_of_text()},
                        {"path", schema_of_text()},
                        {"command", schema_of_text()},
                        {"baseline", {{"type", "string"}, {"enum", {"naive", "as written"}}}},
                        {"budget_seconds", schema_of_measure()},
                        {"seconds", schema_of_measure()},
                        {"interrupted", schema_of_flag()},
                        {"missing", schema_of_texts()},
                        {"notes", schema_of_texts()},
                        {"machine", schema_of_machine()},
                        {"vital_signs", schema_of_vital_signs()},
                        {"measured", schema_of_stretch()},
                        {"ledger", schema_of_ledger()},
                        {"roofline", schema_of_roofline()},
                        {"batch_curve", schema_of_curve("sequences")},
                        {"thread_curve", schema_of_curve("threads")},
                        {"process_curve", schema_of_curve("processes")},
                        {"rate_curve", schema_of_curve("factor")},
                        {"lengths", schema_of_lengths()},
                        {"findings", schema_of_list(schema_of_finding())},
                        {"ladder", schema_of_list(schema_of_rung())},
                        {"not_measured", schema_of_list(not_measured)},
                        {"changes", schema_of_list(change)},
                        {"verification", schema_of_verification()},
                        {"job", schema_with_words(schema_of_type("object"), "the tuned job, as --apply writes it")}}));
  return schema.dump(2) + "\n";
}

}  // namespace brisk
