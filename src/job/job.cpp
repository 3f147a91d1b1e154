#include "job/job.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "base/error.h"
#include "base/files/files.h"
#include "job/foreign_keys.h"
#include "job/job_options.h"
#include "job/run_length.h"

namespace brisk {

namespace {

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
void settle_length(Job& job, const ReadResult& read, const std::string& source_name, std::vector<std::string>& notes) {
  TrainingOptions& training = job.training;
  if (training.max_steps > 0 && read.overridden.contains("training.num_epochs") &&
      !read.overridden.contains("training.max_steps")) {
    notes.push_back(fmt::format("training.num_epochs = {} replaces training.max_steps = {} of {}", training.num_epochs,
                                training.max_steps, source_name));
    training.max_steps = 0;
  }
  if (training.stop.empty()) return;
  // The older key that the file, or the command line, gives.
  const auto other_of = [&](bool on_command_line) {
    for (const auto& [key, value] :
         {std::pair("training.max_steps", training.max_steps), std::pair("training.num_epochs", training.num_epochs)}) {
      if (value > 0 && read.given.contains(key) && read.overridden.contains(key) == on_command_line)
        return fmt::format("{} = {}", key, value);
    }
    return std::string();
  };
  const std::string file_other = other_of(false), override_other = other_of(true);
  const std::string stop_text = fmt::format("training.stop = \"{}\"", training.stop);
  const bool stop_on_command_line = read.overridden.contains("training.stop");
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

// No warm-up steps are a ratio of 0, unless a ratio is given beside them: Hugging Face's Trainer writes both of them
// out, and means the ratio.
void settle_warm_up(Job& job, const ReadResult& read, std::vector<std::string>& notes) {
  TrainingOptions& training = job.training;
  if (training.warmup_steps != 0) return;
  const bool steps_last = read.overridden.contains("training.warmup_steps");
  const bool ratio_last = read.overridden.contains("training.warmup_ratio");
  if (read.given.contains("training.warmup_ratio") && (ratio_last || !steps_last)) {
    if (training.warmup_ratio > 0)
      notes.push_back(fmt::format("training.warmup_steps = 0 leaves the warm-up to training.warmup_ratio = {:g}",
                                  training.warmup_ratio));
  } else {
    training.warmup_ratio = 0;
  }
  training.warmup_steps = -1;
}

}  // namespace

Job job_from_json_text(const std::string& text, const std::string& source_name,
                       const std::vector<std::string>& overrides, std::vector<std::string>& notes) {
  Job job;
  const std::vector<Option> options = declare_with_families(job);
  const ReadResult read = read_options(options, text, source_name, overrides, foreign_keys());
  notes.insert(notes.end(), read.notes.begin(), read.notes.end());
  for (std::string& line : apply_other_defaults(options, read.given)) notes.push_back(std::move(line));
  job.model.type = canonical_type(job.model.type);
  settle_length(job, read, source_name, notes);
  settle_warm_up(job, read, notes);
  for (std::string& line : options_without_effect(options, read.given)) notes.push_back(std::move(line));
  job.given = read.given;
  job.batch_is_of_a_device = std::any_of(read.spelled.begin(), read.spelled.end(), [](const std::string& key) {
    return key.find("per_device") != std::string::npos || key.find("per_gpu") != std::string::npos;
  });
  return job;
}

Job job_from_json_text(const std::string& text, const std::string& source_name) {
  std::vector<std::string> notes;
  return job_from_json_text(text, source_name, {}, notes);
}

Job load_job(const std::string& path, const std::vector<std::string>& overrides, std::vector<std::string>& notes) {
  Job job = job_from_json_text(read_file(path, file_kind::job), path, overrides, notes);
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
         "<!-- Generated from src/job/job_*_options.cpp and src/job/job.h by scripts/make_job_reference.sh. -->\n\n"
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
         "- `--set training.batch_size=64` changes a key from the command line; `--set data.validation=null` restores the "
         "default, whatever the file says.\n"
         "- Other spellings are accepted, with a note that gives the name used here; giving two spellings of one option is "
         "an error. At the top of\n"
         "  the file and with `--set`, the section may be left out: `--set lr=1e-4`.\n"
         "- Every key of Hugging Face's TrainingArguments gets an answer: it is used, ignored and why, or refused and "
         "what to do instead.\n"
         "- Words are the same with hyphens, underscores and capitals: `Text-Classification` is "
         "`text_classification`.\n"
         "- `null` means the default; `\"auto\"` for a number that brisk chooses by the rule given.\n"
         "- `brisk job schema` prints the JSON schema, for editors that complete and check.\n\n" +
         options_markdown(declare_job_options(job), job_sections());
}

std::string resume_keys_markdown() {
  Job job;
  std::string text = "| section | keys that may change |\n|---|---|\n";
  for (const auto& [section, description] : job_sections()) {
    std::vector<std::string> names;
    for (const Option& option : declare_job_options(job)) {
      if (option.section() == section && option.on_resume == OnResume::may_change) names.push_back(option.name());
    }
    text += fmt::format("| {} | `{}` |\n", section.empty() ? "the top" : "`" + section + "`", fmt::join(names, "`, `"));
  }
  return text;
}

}  // namespace brisk
