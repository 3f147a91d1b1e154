#include "job/job.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/files.h"
#include "job/job_options.h"
#include "job/run_length.h"

namespace brisk {

namespace {

// BERT's shape, and the recipe with which people fine-tune it.
void encoder_defaults(Job& job, const std::string& task, const std::string& requested_type) {
  job.task = task;
  job.model.type = requested_type;
  if (!job.model.is_encoder()) job.model.type = "bert";
  job.model.activation = "gelu_erf";
  job.model.norm_epsilon = job.model.type == "roberta" ? 1e-5 : 1e-12;
  job.model.dropout = 0.1;
  if (job.model.type == "distilbert") job.model.classifier_dropout = 0.2;
  TrainingOptions& training = job.training;
  training.optimizer = "adamw";
  training.batch_size = 32;
  training.lr_scheduler = "linear";
  training.warmup_ratio = 0.1;
  training.weight_decay = 0.01;
  training.beta2 = 0.999;
  if (task != "classify") return;
  training.best_by = "accuracy";
  // A classifier that begins to learn has gradients ten times those of its plateau: the guard would take that away.
  training.divergence_guard = false;
}

// The defaults of a job are those of the structs, unless its task or its type names a family with another shape, or its
// optimizer another recipe.
Job defaults_for(const Job& first) {
  const std::string &requested_type = first.model.type, &optimizer = first.training.optimizer;
  Job job;
  if (first.task != "language_model") {
    encoder_defaults(job, first.task, requested_type);
    return job;
  }
  if (optimizer == "adamw") {
    job.training.batch_size = 32;
    job.training.lr_scheduler = "cosine";
  }
  if (requested_type == "llama") {
    job.model.norm = "rmsnorm";
    job.model.activation = "swiglu";
    job.model.positions = "rotary";
    job.model.bias = false;
    job.model.tie_embeddings = false;
  }
  return job;
}

// The declarations with every word of model.type a choice of its own, so that "llama" can still be told from "gpt2".
std::vector<Option> declare_with_families(Job& job) {
  std::vector<Option> options = declare_job_options(job);
  for (Option& option : options) {
    if (option.path != "model.type") continue;
    for (const auto& [word, choice] : option.choice_aliases) option.choices.push_back(word);
    option.choice_aliases.clear();
  }
  return options;
}

// The choice that a word for model.type stands for: "llama" is a decoder.
std::string canonical_type(const std::string& word) {
  Job job;
  for (const Option& option : declare_job_options(job)) {
    if (option.path != "model.type") continue;
    for (const auto& [alias, choice] : option.choice_aliases) {
      if (alias == word) return choice;
    }
  }
  return word;
}

// `stop` and the older keys say the same thing: two answers from one place are an error, and the command line goes
// before the file.
void settle_length(Job& job, const std::string& text, const std::string& source_name,
                   const std::vector<std::string>& overrides, std::vector<std::string>& notes) {
  TrainingOptions& training = job.training;
  if (training.stop.empty()) return;
  Job in_file, in_overrides;
  in_file.training.num_epochs = in_overrides.training.num_epochs = 0;
  read_options(declare_with_families(in_file), text, source_name);
  read_options(declare_with_families(in_overrides), "{}", source_name, overrides);
  const auto other_of = [](const Job& place) {
    return place.training.max_steps > 0    ? fmt::format("training.max_steps = {}", place.training.max_steps)
           : place.training.num_epochs > 0 ? fmt::format("training.num_epochs = {}", place.training.num_epochs)
                                           : std::string();
  };
  const std::string file_other = other_of(in_file), override_other = other_of(in_overrides);
  const std::string stop_text = fmt::format("training.stop = \"{}\"", training.stop);
  const bool stop_on_command_line = !in_overrides.training.stop.empty();
  const std::string& rival = stop_on_command_line ? override_other : file_other;
  if (!rival.empty() && (stop_on_command_line || override_other.empty())) {
    user_error("{}: {} and {} both say how long the run is; remove one of them",
               stop_on_command_line ? "the command line" : source_name, stop_text, rival);
  }
  if (!stop_on_command_line && !override_other.empty()) {
    notes.push_back(fmt::format("{} replaces {} of {}", override_other, stop_text, source_name));
    training.stop.clear();
    return;
  }
  if (!file_other.empty()) notes.push_back(fmt::format("{} replaces {} of {}", stop_text, file_other, source_name));
  parse_run_length(training.stop,
                   fmt::format("{}training.stop", stop_on_command_line ? std::string() : source_name + ": "));
  training.num_epochs = training.max_steps = 0;
}

}  // namespace

Job job_from_json_text(const std::string& text, const std::string& source_name,
                       const std::vector<std::string>& overrides, std::vector<std::string>& notes) {
  Job first;
  read_options(declare_with_families(first), text, source_name, overrides);
  Job job = defaults_for(first);
  const ReadResult result = read_options(declare_with_families(job), text, source_name, overrides);
  notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  if (job.model.type == "llama") {
    notes.push_back(
        "type llama: a decoder; norm rmsnorm, activation swiglu, positions rotary, no bias, untied, where not given");
  }
  job.model.type = canonical_type(job.model.type);
  if (job.task != "language_model") {
    if (!result.given.contains("data.text_field")) job.data.text_field.clear();
    notes.push_back(
        fmt::format("task {}: {}'s shape, adamw, lr_scheduler linear, warmup_ratio 0.1, weight_decay 0.01, batch_size "
                    "32, where not "
                    "given",
                    job.task, job.model.type));
  } else if (job.training.optimizer == "adamw") {
    notes.push_back("optimizer adamw: lr_scheduler cosine, batch_size 32, where not given");
  }
  settle_length(job, text, source_name, overrides, notes);
  job.given = result.given;
  if (job.model.norm == "rmsnorm" && job.model.bias && !result.given.contains("model.bias")) {
    job.model.bias = false;
    notes.push_back("bias = false (norm is rmsnorm)");
  }
  return job;
}

Job job_from_json_text(const std::string& text, const std::string& source_name) {
  std::vector<std::string> notes;
  return job_from_json_text(text, source_name, {}, notes);
}

Job load_job(const std::string& path, const std::vector<std::string>& overrides, std::vector<std::string>& notes) {
  Job job = job_from_json_text(read_file(path), path, overrides, notes);
  if (job.name.empty()) job.name = std::filesystem::path(path).stem().string();
  return job;
}

std::string job_to_json_text(const Job& job) {
  Job copy = job;
  return options_to_json_text(declare_job_options(copy));
}

std::string job_schema() {
  Job job;
  return options_schema(declare_job_options(job), "brisk job", job_sections());
}

std::string job_reference_markdown() {
  Job job;
  return "# Job reference\n\n"
         "<!-- Generated from src/job/job_options.cpp and src/job/job.h by scripts/make_job_reference.sh. -->\n\n"
         "A job is one JSON file; `brisk train job.json` runs it. Every key has a default, so the smallest job is "
         "`{}`, with\n"
         "`--data` to say what to learn from:\n\n"
         "```json\n"
         "{\n"
         "  \"model\": {\"d_model\": 256, \"num_layers\": 2, \"vocab_size\": 10000},\n"
         "  \"training\": {\"max_length\": 64, \"batch_size\": 32, \"num_epochs\": 1},\n"
         "  \"data\": {\"train\": \"books/*.txt\"}\n"
         "}\n"
         "```\n\n"
         "- Comments (`//` and `/* */`) are allowed. A key that is not in these tables is an error that names the "
         "nearest one.\n"
         "- `--set training.batch_size=64` changes a key from the command line; `--set data.validation=null` is the "
         "default "
         "again, whatever the file says.\n"
         "- The other spellings are understood and the name used here is shown; giving two spellings of one option is "
         "an error.\n"
         "- `null` means the default; `\"auto\"` for a number that brisk chooses by the rule given.\n"
         "- `brisk job schema` prints the JSON schema, for editors that complete and check.\n\n" +
         options_markdown(declare_job_options(job), job_sections());
}

}  // namespace brisk
