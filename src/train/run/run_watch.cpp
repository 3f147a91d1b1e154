#include "train/run/run_watch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/unicode.h"
#include "infer/device_choice.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// A byte that is no UTF-8 becomes U+FFFD: a model draws tokens, and a token may be half a character.
std::string valid_utf8(std::string_view text) {
  std::string valid;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    append_utf8(point.value == kInvalidCodePoint ? 0xFFFD : point.value, valid);
    at += point.length;
  }
  return valid;
}

// One line of at most `width` columns, without the control characters that a terminal would obey.
std::string on_one_line(std::string_view valid, int64_t width) {
  std::string line;
  bool space = true;  // none at the start, and never two
  for (size_t at = 0; at < valid.size();) {
    const CodePoint point = decode_utf8(valid, at);
    at += point.length;
    const bool blank = point.value <= 0x20 || (point.value >= 0x7F && point.value <= 0xA0);
    if (blank && space) continue;
    space = blank;
    append_utf8(blank ? ' ' : point.value, line);
  }
  return shortened(line, width);
}

// TensorBoard shows text as Markdown; a block of code is shown as it is.
std::string as_code_block(std::string_view text) {
  std::string block = "    ";
  for (const char letter : text) {
    block += letter;
    if (letter == '\n') block += "    ";
  }
  return block;
}

using NumberReader = std::function<void(int64_t first, std::span<float> numbers)>;

Histogram histogram_of(const NumberReader& read, int64_t count, std::vector<float>& buffer) {
  Histogram histogram;
  const auto each_piece = [&](const auto& use) {
    for (int64_t first = 0; first < count; first += std::ssize(buffer)) {
      const int64_t size = std::min<int64_t>(std::ssize(buffer), count - first);
      const std::span<float> piece(buffer.data(), static_cast<size_t>(size));
      read(first, piece);
      use(std::span<const float>(piece));
    }
  };
  each_piece([&](std::span<const float> piece) { histogram.see(piece); });
  each_piece([&](std::span<const float> piece) { histogram.count(piece); });
  return histogram;
}

Json ledger_json(const Ledger::Totals& totals) {
  Json json = Json::object();
  for (const auto& [phase, seconds] : phases_of(totals)) json[phase] = seconds;
  return json;
}

int64_t memory_of(const Device& device) { return device.is_cuda() ? device.memory().peak() : peak_memory_bytes(); }

}  // namespace

RunWatch::RunWatch(const RunPlan& plan, const RunState& run, const RunResources& resources)
    : plan_(plan), run_(run), resources_(resources) {
  epoch_ = run.state.cursor.epoch + 1;
  open_files();
  start();
  close_stretch();
  if (events_ && run.state.step == 0) {
    events_->text("job", 0, as_code_block(job_to_json_text(plan.job)));
    events_->write();
  }
}

void RunWatch::open_files() {
  ledger_file_ = std::make_unique<RecordLog>(plan_.writes() ? plan_.directory.ledger_path() : "");
  samples_file_.reset();
  generator_.reset();
  if (!plan_.job.training.tensorboard || !plan_.writes()) return;
  events_ = std::make_unique<EventFile>(plan_.directory.events_path(), run_.state.step);
}

void RunWatch::went_back() {
  open_files();
  while (!closed_.empty() && closed_.back().first > run_.state.step) closed_.pop_back();
  if (closed_.empty()) start();  // to before this process: its first line is gone, too
  stretch_start_ = closed_.empty() ? Ledger::Totals() : closed_.back().second;
  epoch_ = run_.state.cursor.epoch + 1;
  steps_ = tokens_ = sequences_ = rows_ = 0;
}

void RunWatch::start() {
  const Machine machine = read_machine();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  Json line = {{"kind", "start"},
               {"step", run_.state.step},
               {"time", utc_now()},
               {"host", host.data()},
               {"process", ::getpid()},
               {"cpu", machine.cpu_model},
               {"cores", machine.cores},
               {"logical_processors", machine.logical_processors},
               {"memory_bytes", machine.memory_total_bytes},
               {"system", machine.system},
               {"threads", thread_pool().size()},
               {"isa", arithmetic_unit(resources_.engine->parameters().device())},
               {"precision", precision_name(plan_.tuned.compute_type, plan_.tuned.products)},
               {"peak_gflops", resources_.peak->gflops()},
               {"flop_per_token", plan_.flop_per_token},
               {"parameters", plan_.memory.parameters},
               {"total_steps", run_.total_steps},
               {"steps_per_epoch", plan_.steps_per_epoch},
               {"training_tokens", plan_.data.train->all_rows()},
               {"validation_tokens", plan_.data.validation->all_rows()},
               {"metrics", metric_kinds_to_json(plan_.task->metrics())}};
  for (const auto& [key, fingerprint] : fingerprints_of(plan_.data)) line[key] = fingerprint;
  ledger_file_->append(line_of(line));
}

void RunWatch::count(int64_t epoch, const StepResult& result) {
  epoch_ = epoch;
  ++steps_;
  tokens_ += result.tokens;
  sequences_ += result.sequences;
  rows_ += result.rows;
}

void RunWatch::step(const StepMetrics& line) {
  if (!events_) return;
  for (const Metric& metric : line.metrics) events_->scalar(metric.tag() + "/train", line.step, metric.value);
  events_->scalar("learning_rate", line.step, line.learning_rate);
  events_->scalar("gradient_norm", line.step, line.gradient_norm);
  events_->scalar("speed/tokens_per_second", line.step, line.tokens_per_second);
  events_->scalar("speed/step_ms", line.step, line.step_ms);
  if (line.gpu) {
    const auto add = [&](const char* name, double value) {
      if (value >= 0) events_->scalar(name, line.step, value);
    };
    add("GPU/busy_percent", 100 * line.gpu->busy_share);
    add("GPU/watts", line.gpu->watts);
    add("GPU/celsius", line.gpu->celsius);
    add("GPU/sm_mhz", line.gpu->sm_mhz);
  }
  events_->write();
}

void RunWatch::evaluation(const EvaluationMetrics& line) {
  if (!events_) return;
  for (const Metric& metric : line.metrics) events_->scalar(metric.tag() + "/validation", line.step, metric.value);
  events_->write();
}

void RunWatch::write_sample(int64_t step, int64_t epoch, size_t number, const Task::Sample& sample) {
  if (!samples_file_) samples_file_ = std::make_unique<RecordLog>(plan_.directory.samples_path());
  const std::string text = valid_utf8(sample.text);
  Json line = {{"step", step}, {"epoch", epoch}, {"prompt", valid_utf8(sample.prompt)}, {"text", text}};
  if (!sample.image.empty()) line["image"] = valid_utf8(sample.image);
  if (!sample.reference.empty()) line["reference"] = sample.reference;
  line["tokens"] = sample.tokens;
  line["ended"] = sample.ended;
  samples_file_->append(line_of(line));
  if (!events_) return;
  const std::string name = sample.prompt.empty() ? "(no prompt)" : on_one_line(valid_utf8(sample.prompt), 63);
  events_->text(fmt::format("samples/{} {}", number + 1, name), step, as_code_block(text));
}

// What the task shows of the validation data.
void RunWatch::sample_validation(int64_t step, int64_t epoch, Ledger& ledger) {
  if (!plan_.writes() || plan_.data.validation->empty() || !plan_.data.tokenizer) return;
  Ledger::Hold hold(ledger, Phase::evaluation);
  std::vector<Task::Sample> samples;
  try {
    samples = plan_.task->samples(resources_.engine->model(), resources_.engine->parameters(), *plan_.data.tokenizer,
                                  *plan_.data.validation);
  } catch (const Cancelled&) {  // the run ends with this step, and does without them
    return;
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    write_sample(step, epoch, i, samples[i]);
    const auto shown = [&](const char* name, const std::string& text) {
      say("{} {}", coloured_in_log(name, Colour::dim), on_one_line(valid_utf8(text), 150));
    };
    shown(samples[i].image.empty() ? "source:   " : "image:    ", samples[i].prompt);
    shown("reference:", samples[i].reference);
    shown("output:   ", samples[i].text);
  }
  if (events_ && !samples.empty()) events_->write();
}

void RunWatch::sample(int64_t step, int64_t epoch, Ledger& ledger) {
  sample_validation(step, epoch, ledger);
  const TrainingOptions& training = plan_.job.training;
  if (training.sample_tokens <= 0 || !plan_.writes()) return;
  Ledger::Hold hold(ledger, Phase::evaluation);
  if (!generator_) {
    const CausalModel* model = resources_.engine->model().causal();
    BRISK_CHECK(model != nullptr, "training.sample_tokens of a model that does not continue texts");
    generator_ = std::make_unique<Generator>(*model, resources_.engine->parameters(), *plan_.data.tokenizer);
  }
  std::vector<std::string> prompts = training.sample_prompts;
  if (prompts.empty()) prompts.emplace_back();
  for (size_t i = 0; i < prompts.size(); ++i) {
    const GenerateOptions options{
        .max_tokens = training.sample_tokens,
        .temperature = training.sample_temperature,
        .top_k = training.sample_top_k,
        .top_p = training.sample_top_p,
        .repetition_penalty = training.sample_repetition_penalty,
        // The same draws at every evaluation: what differs between two samples of a prompt is what was learned.
        .seed = random_key({static_cast<uint64_t>(training.seed), i})};
    Generated generated;
    try {
      generated = generator_->generate(prompts[i], options);
    } catch (const Cancelled&) {  // the run ends with this step, and does without those that are left
      return;
    }
    write_sample(step, epoch, i, {prompts[i], generated.text, "", generated.new_tokens, generated.ended});
    say("{} {}", coloured_in_log("sample:", Colour::dim), on_one_line(valid_utf8(generated.text), 160));
  }
  if (events_) events_->write();
}

bool RunWatch::wants_histograms(int64_t step) const {
  const int64_t every = plan_.job.training.histogram_steps;
  return plan_.job.training.tensorboard && every > 0 && step % every == 0;
}

void RunWatch::histograms(int64_t step) {
  if (!wants_histograms(step) || !plan_.writes()) return;
  constexpr size_t kPiece = 1 << 16;
  std::vector<float> buffer(kPiece);
  const ParameterStore& store = resources_.engine->parameters();
  for (const auto& parameter : store.all()) {
    const auto write = [&](const char* kind, const NumberReader& read) {
      const std::string name = fmt::format("{}/{}", kind, parameter->spec.name);
      const Histogram histogram = histogram_of(read, parameter->count(), buffer);
      events_->histogram(name, step, histogram);
      if (histogram.not_finite == 0) return;
      warn("step {}: {}: {} of {} values are not finite, and are not in its histogram", step, name,
           histogram.not_finite, parameter->count());
    };
    write("parameters", [&](int64_t first, std::span<float> numbers) { store.read(*parameter, first, numbers); });
    if (!parameter->gradient) continue;
    write("gradients", [&](int64_t first, std::span<float> numbers) {
      store.device().copy_out(numbers.data(), parameter->gradient.f32() + first,
                              std::ssize(numbers) * size_of(DType::f32));
      if (gradient_scaling_ == 1) return;
      for (float& number : numbers) number = static_cast<float>(number / gradient_scaling_);
    });
  }
  events_->write();
}

void RunWatch::close_stretch() {
  const Ledger::Totals now = run_.ledger.totals();
  const Ledger::Totals stretch = now - stretch_start_;
  ledger_file_->append(line_of({{"kind", "stretch"},
                                {"epoch", epoch_},
                                {"step", run_.state.step},
                                {"steps", steps_},
                                {"tokens", tokens_},
                                {"sequences", sequences_},
                                {"rows", rows_},
                                {"seconds", stretch.seconds()},
                                {"peak_memory_bytes", memory_of(resources_.engine->parameters().device())},
                                {"peak_gflops", resources_.peak->gflops()},
                                {"total_steps", run_.total_steps},
                                {"ledger", ledger_json(stretch)}}));
  stretch_start_ = now;
  closed_.emplace_back(run_.state.step, now);
  steps_ = tokens_ = sequences_ = rows_ = 0;
}

void RunWatch::epoch(const EpochRow& row) {
  close_stretch();  // its steps are before its sums
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json line = {{"kind", "epoch"},
               {"epoch", row.epoch},
               {"step", row.step},
               {"training_loss", number(row.training_loss)},
               {"training_accuracy", number(row.training_accuracy)},
               {"skipped_updates", row.skipped_updates}};
  if (row.since_step > 0) line["since_step"] = row.since_step;
  ledger_file_->append(line_of(line));
}

void RunWatch::end_epoch(const EpochRow& row, const Ledger::Totals& whole_epoch) {
  epoch(row);
  if (!events_) return;
  for (const auto& [phase, seconds] : phases_of(whole_epoch))
    events_->scalar("ledger_percent/" + phase, run_.state.step, 100 * seconds / whole_epoch.seconds());
  events_->write();
}

void RunWatch::end(const std::string& how, int64_t diverged_at) {
  close_stretch();
  Json line = {{"kind", "end"}, {"step", run_.state.step}, {"time", utc_now()}, {"ended", how}};
  if (diverged_at > 0) line["diverged_at"] = diverged_at;
  ledger_file_->append(line_of(line));
}

void RunWatch::sync() {
  ledger_file_->sync();
  if (samples_file_) samples_file_->sync();
  if (events_) events_->sync();
}

std::string RunWatch::problem() const {
  for (const std::string& problem : {ledger_file_->problem(), samples_file_ ? samples_file_->problem() : std::string(),
                                     events_ ? events_->problem() : std::string()}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace brisk
