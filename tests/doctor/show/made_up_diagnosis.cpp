#include "doctor/show/made_up_diagnosis.h"

#include <cmath>

namespace brisk::test {

namespace {

void put_phase(Ledger::Totals& ledger, Phase phase, double seconds) {
  ledger.nanoseconds[static_cast<size_t>(phase)] = std::llround(1e9 * seconds);
}

Ledger::Totals made_up_ledger(double products, double optimizer) {
  Ledger::Totals ledger;
  put_phase(ledger, Phase::data_wait, 0.12);
  put_phase(ledger, Phase::copy, 0.01);
  put_phase(ledger, Phase::forward_embedding, 0.05);
  put_phase(ledger, Phase::forward_linear, products);
  put_phase(ledger, Phase::forward_attention, 0.4 * products);
  put_phase(ledger, Phase::forward_norm, 0.21);
  put_phase(ledger, Phase::forward_elementwise, 0.33);
  put_phase(ledger, Phase::loss, 0.02);
  put_phase(ledger, Phase::backward_embedding, 0.09);
  put_phase(ledger, Phase::backward_linear, 2 * products);
  put_phase(ledger, Phase::backward_attention, 0.9 * products);
  put_phase(ledger, Phase::backward_norm, 0.31);
  put_phase(ledger, Phase::backward_elementwise, 0.42);
  put_phase(ledger, Phase::clipping, 0.11);
  put_phase(ledger, Phase::optimizer, optimizer);
  put_phase(ledger, Phase::logging, 0.004);
  put_phase(ledger, Phase::other, 0.03);
  return ledger;
}

void make_up_stretch(Readings& readings, double tokens, double rows, const Ledger::Totals& ledger) {
  StretchReadings& stretch = readings.stretch;
  stretch.steps = 20;
  stretch.micro_batches = 20;
  stretch.sequences = 640;
  stretch.tokens = tokens;
  stretch.rows = rows;
  stretch.targets = 640;
  stretch.ledger = ledger;
  stretch.seconds = ledger.seconds();
  stretch.median_step_seconds = stretch.seconds / 20;
  stretch.forwards_per_step = 1;
  stretch.user_seconds = 1.9 * stretch.seconds;
  stretch.system_seconds = 0.03 * stretch.seconds;
  stretch.threads = 2;
  stretch.minor_faults = 1234;
  stretch.major_faults = 0;
  stretch.swapped_bytes = 0;
  stretch.peak_memory_bytes = int64_t{3} << 30;
}

Rung made_up_rung(const std::string& step, const std::string& finding, double tokens_per_second, double gain,
                  double cumulative, bool kept, const std::string& verdict) {
  Rung rung;
  rung.step = step;
  rung.finding = finding;
  rung.tokens_per_second = tokens_per_second;
  rung.rows_per_second = tokens_per_second / 25.3;
  rung.gain = gain;
  rung.gain_low = 0.98 * gain;
  rung.gain_high = 1.03 * gain;
  rung.pairs = 6;
  rung.cumulative = cumulative;
  rung.utilisation = tokens_per_second / 12000;
  rung.epoch_seconds = 1.7e6 / tokens_per_second;
  rung.predicted_gain = 1.1 * gain;
  rung.peak_memory_bytes = (int64_t{3} << 30) - static_cast<int64_t>(1e8 * cumulative);
  rung.loss = 0.6931 - 0.001 * cumulative;
  rung.loss_spread = 0.0021;
  rung.loss_tokens = 40'000;
  rung.kept = kept;
  rung.verdict = verdict;
  rung.proof = {.measured = true,
                .loss = 0.69314718,
                .other_loss = 0.69314722,
                .worst_difference = 3.1e-6,
                .difference = 4.2e-7,
                .allowed = 1e-5,
                .worst_tensor = "encoder.layer.3.attention.output.dense.weight",
                .tensors = 197,
                .holds = true};
  return rung;
}

std::vector<Finding> made_up_findings() {
  Finding padding;
  padding.id = "padding";
  padding.evidence = {{"rows that are padding", "80.2 %", "of 81,920 computed"}, {"longest text", "66 tokens", ""}};
  padding.cause = "80.2 % of the computed rows are padding up to max_length 128.";
  padding.fix = Fix{.key = "training.max_length", .value = "66", .advice = ""};
  padding.predicted_gain = 4.41;
  Finding batch;
  batch.id = "batch_size";
  batch.evidence = {{"tokens/s at 8 sequences", "2.1K", ""}, {"at 32, the knee", "3.9K", "+86 %"}};
  batch.cause = "A micro-batch of 8 sequences is too small for the products to reach their speed.";
  batch.fix = Fix{.key = "training.batch_size",
                  .value = "32",
                  .advice = "",
                  .also = {{"training.learning_rate", "4e-05"}},
                  .rule = "the learning rate grows with the square root of the batch"};
  batch.predicted_gain = 1.62;
  batch.sameness = Sameness::changes_maths;
  batch.change = "fewer, larger optimizer steps";
  Finding swap;
  swap.id = "idle_gpu";
  swap.cause = "There is a GPU, and the job trains on the CPU.";
  swap.fix = Fix{.key = "", .value = "", .advice = "set CUDA_VISIBLE_DEVICES so that the process sees the GPU"};
  swap.predicted_gain = 1.2;
  Finding quality;
  quality.id = "plateau";
  quality.evidence = {{"validation loss of the last 3 evaluations", "0.2911 to 0.2908", ""}};
  quality.cause = "The validation loss has not fallen for three evaluations.";
  quality.fix = Fix{.key = "training.num_epochs", .value = "2", .advice = "stop earlier, or use more data"};
  quality.sameness = Sameness::changes_maths;
  quality.is_quality = true;
  return {padding, batch, swap, quality};
}

}  // namespace

Readings made_up_readings() {
  Readings readings;
  readings.machine = {.cpu_model = "AMD EPYC 9B14",
                      .isa = "avx512bf16",
                      .cores = 2,
                      .logical_processors = 4,
                      .memory_total_bytes = int64_t{16} << 30,
                      .memory_available_bytes = int64_t{12} << 30,
                      .has_bf16 = true,
                      .peak_gflops = {{"fp32", 190}, {"bf16", 380}},
                      .product_gflops = {{"fp32", 170}, {"bf16", 310}},
                      .memory_gb_per_second = 14.2,
                      .no_gpu = "no NVIDIA driver",
                      .visible_devices = "unset"};
  readings.data.sequences = 67'349;
  readings.data.tokens = 1.7e6;
  readings.data.longest = 66;
  readings.data.median = 22;
  readings.data.p90 = 41;
  readings.data.p99 = 54;
  readings.data.mean = 25.3;
  for (int64_t first = 1; first <= 66; first += 2) {
    const double off = static_cast<double>(first) - 22;
    readings.data.lengths.push_back({first, first + 1, std::llround(6000 * std::exp(-off * off / 220))});
  }
  readings.data.cut = 12;
  readings.model.parameters = readings.model.trained_parameters = 6'695'010;
  readings.model.vocabulary = 30'522;
  readings.model.flop_per_token = 2.6e7;
  readings.model.attention_flop_share = 0.04;
  readings.model.head_flop_share = 0.001;
  readings.model.optimizer_bytes = 6'695'010 * 16;
  readings.model.precision = "fp32";
  readings.job.training.batch_size = 8;
  make_up_stretch(readings, 16'192, 81'920, made_up_ledger(5.4, 0.9));
  readings.course.steps_per_epoch = 2104;
  readings.vital_signs = {
      .measured = true,
      .tensors = 104,
      .tensors_changed = 104,
      .tensors_with_gradient = 104,
      .first_loss = 0.6988,
      .expected_first_loss = std::log(2.0),
      .last_loss = 0.5812,
      .forwards_per_step = 1,
      .target_share = 0.0395,
      .examples = {"[CLS] hide new secretions from the parental units [SEP] [PAD] [PAD] [PAD]",
                   "[CLS] that loves its characters and communicates something rather beautiful about "
                   "human nature [SEP] [PAD] [PAD] [PAD] [PAD] [PAD] [PAD] [PAD] [PAD] [PAD] [PAD]"}};
  for (const double batch : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
    readings.batch_curve.push_back({.x = batch,
                                    .tokens_per_second = 4300 * batch / (batch + 6),
                                    .memory_bytes = static_cast<int64_t>(1e9 + 4e7 * batch)});
  }
  readings.thread_curve = {{.x = 1, .tokens_per_second = 510}, {.x = 2, .tokens_per_second = 982}};
  readings.rate_curve = {{.x = 0.1, .loss = 0.66}, {.x = 1, .loss = 0.58}, {.x = 10, .loss = -1}};
  return readings;
}

Diagnosis rich_diagnosis() {
  Diagnosis diagnosis;
  diagnosis.job_name = "sst2-minilm";
  diagnosis.job_path = "jobs/sst2-minilm.json";
  diagnosis.naive = true;
  diagnosis.budget_seconds = 300;
  diagnosis.seconds = 287.4;
  diagnosis.before = diagnosis.after = made_up_readings();
  diagnosis.after.model.precision = "bf16";
  make_up_stretch(diagnosis.after, 64'768, 64'768, made_up_ledger(2.2, 0.8));
  diagnosis.written.training.batch_size = 8;
  diagnosis.written.training.learning_rate = 2e-5;
  diagnosis.written.training.max_length = 128;
  diagnosis.tuned = diagnosis.written;
  diagnosis.tuned.training.batch_size = 32;
  diagnosis.tuned.training.learning_rate = 4e-5;
  diagnosis.tuned.training.max_length = 66;
  diagnosis.tuned_text =
      "{\n  \"model\": {\"from\": \"minilm\"},\n  \"training\": {\"batch_size\": 32, \"max_length\": 66}\n}\n";
  diagnosis.findings = made_up_findings();
  Rung first = made_up_rung("one sequence at a time, padded, fp32", "", 612, 1, 1, true, "");
  Rung padding = made_up_rung("max_length: 66", "padding", 2430, 3.97, 3.97, true, "kept: 3.97x [3.89, 4.09]");
  padding.fix = *diagnosis.findings[0].fix;
  padding.sameness = Sameness::same_maths;
  Rung batch = made_up_rung("batch_size: 32", "batch_size", 3890, 1.60, 6.36, true, "kept: 1.60x [1.57, 1.65]");
  batch.fix = *diagnosis.findings[1].fix;
  batch.sameness = Sameness::changes_maths;
  batch.proof = {};
  Rung precision = made_up_rung("precision: bf16", "precision", 6710, 1.72, 10.96, true, "kept: 1.72x [1.69, 1.77]");
  precision.fix = {.key = "training.precision", .value = "\"bf16\"", .advice = ""};
  precision.sameness = Sameness::same_maths;
  Rung workers = made_up_rung(
      "num_workers: 4", "data_loading", 6740, 1.00, 11.0, false,
      "within the noise: 1.00x [0.98, 1.03]; more loader threads do not help where the loader is not waited for");
  workers.fix = {.key = "training.num_workers", .value = "4", .advice = ""};
  Rung large = made_up_rung("batch_size: 512", "batch_size", 0, 1, 1, false,
                            "ended with: out of memory: needs 41.2 GiB of 16.0 GiB");
  large.loss = large.loss_spread = -1;
  large.epoch_seconds = large.utilisation = large.rows_per_second = large.loss_tokens = 0;
  large.peak_memory_bytes = 0;
  large.proof = {};
  diagnosis.ladder = {first, padding, batch, precision, workers, large};
  diagnosis.not_measured = {{"gradient_checkpointing: false", 1.31, "the budget was over"},
                            {"a distilled model", 1.9, "changes the maths: --fix all tries it"}};
  diagnosis.notes = {"Other processes took 12 % of the processors meanwhile."};
  diagnosis.command = "brisk doctor jobs/sst2-minilm.json --baseline naive --budget 5m";
  diagnosis.verification =
      Verification{.before = {"runs/a", 8211, 2737, 621, "accuracy", 0.9037, 0.884, 0.9206},
                   .after = {"runs/b", 771, 257, 6615, "accuracy", 0.9014, 0.8816, 0.9185},
                   .same_quality = true,
                   .verdict = "The accuracies lie within each other's 95 % intervals; an epoch takes 10.6 times less."};
  return diagnosis;
}

Diagnosis uneventful_diagnosis() {
  Diagnosis diagnosis;
  diagnosis.job_name = "tuned";
  diagnosis.job_path = "jobs/tuned.json";
  diagnosis.seconds = 31;
  diagnosis.before = made_up_readings();
  make_up_stretch(diagnosis.before, 64'768, 64'768, made_up_ledger(2.2, 0.8));
  diagnosis.ladder = {made_up_rung("as written", "", 6700, 1, 1, true, "")};
  diagnosis.command = "brisk doctor jobs/tuned.json";
  return diagnosis;
}

Diagnosis interrupted_diagnosis() {
  Diagnosis diagnosis;
  diagnosis.job_name = "early";
  diagnosis.interrupted = true;
  diagnosis.before.machine.cpu_model = "AMD EPYC 9B14";
  return diagnosis;
}

Diagnosis hostile_diagnosis(const std::string& attack) {
  Diagnosis diagnosis = rich_diagnosis();
  for (std::string* text : {&diagnosis.job_name, &diagnosis.job_path, &diagnosis.command, &diagnosis.tuned_text,
                            &diagnosis.before.machine.cpu_model, &diagnosis.before.machine.no_gpu,
                            &diagnosis.before.machine.isa, &diagnosis.verification->verdict,
                            &diagnosis.verification->before.metric, &diagnosis.verification->before.run}) {
    *text = attack;
  }
  diagnosis.notes = {attack};
  diagnosis.before.vital_signs.examples = {attack};
  diagnosis.before.vital_signs.unchanged = {attack};
  diagnosis.before.vital_signs.tensors_changed = 3;
  diagnosis.before.stretch.gpu.name = attack;
  diagnosis.written.comment = attack;
  diagnosis.written.training.sample_prompts = {attack};
  for (Finding& finding : diagnosis.findings) {
    finding.id = finding.cause = finding.change = attack;
    finding.evidence = {{attack, attack, attack}};
    finding.fix = Fix{.key = attack, .value = attack, .advice = attack, .also = {{attack, attack}}, .rule = attack};
  }
  for (Rung& rung : diagnosis.ladder) {
    rung.step = rung.verdict = rung.finding = rung.proof.worst_tensor = attack;
    rung.fix = *diagnosis.findings.front().fix;
  }
  for (NotMeasured& each : diagnosis.not_measured) each.step = each.reason = attack;
  return diagnosis;
}

}  // namespace brisk::test
