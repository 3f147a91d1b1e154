#include "cli/flag_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/parse_json.h"
#include "base/text/spelling.h"
#include "job/foreign_keys.h"
#include "job/job.h"
#include "job/job_options.h"

namespace brisk {

namespace {

struct Hint {
  const char* command;
  const char* flag;  // in plain spelling: without hyphens and underscores
  const char* use;   // {} stands for the value
};

constexpr Hint kHints[] = {
    {"train", "epochs", "--stop {}e"},
    {"train", "numepochs", "--stop {}e"},
    {"train", "numtrainepochs", "--stop {}e"},
    {"train", "maxepochs", "--stop {}e"},
    {"train", "maxsteps", "--stop {}u"},
    {"train", "steps", "--stop {}u"},
    {"train", "time", "--stop {}"},
    {"train", "earlystopping", "--set training.early_stopping_patience=3"},
    {"train", "outputdir", "--output {}"},
    {"train", "out", "--output {}"},
    {"train", "trainfile", "--data {}"},
    {"train", "traindata", "--data {}"},
    {"train", "dataset", "--data {}"},
    {"train", "input", "--data {}"},
    {"train", "valid", "--set data.validation={}"},
    {"train", "validation", "--set data.validation={}"},
    {"train", "model", "--set model.from={}"},
    {"train", "pretrained", "--set model.from={}"},
    {"train", "fp32", "--set training.precision=fp32"},
    {"train", "fp16", "--set training.precision=fp16"},
    {"train", "bf16", "--set training.precision=bf16"},
    {"train", "cpu", "--device cpu"},
    {"train", "usecpu", "--device cpu"},
    {"train", "gpu", "--device cuda"},
    {"train", "gpus", "--device cuda: one GPU"},
    {"train", "workers", "--set training.num_workers={}"},
    {"train", "verbose", "--set training.logging_steps=1 for a line a step"},
    {"train", "cuda", "--device cuda"},
    {"train", "force", "--overwrite"},
    {"train", "overwriteoutputdir", "--overwrite"},
    {"train", "check", "--dry-run"},
    {"train", "validate", "--dry-run"},
    {"train", "continue", "--resume"},
    {"train", "resumefromcheckpoint", "--resume"},
    {"train", "config", "brisk train JOB: the job file needs no flag"},
    {"train", "job", "brisk train JOB: the job file needs no flag"},
    {"generate", "maxnewtokens", "--max-tokens {}"},
    {"generate", "tokens", "--max-tokens {}"},
    {"generate", "numtokens", "--max-tokens {}"},
    {"generate", "length", "--max-tokens {}"},
    {"generate", "maxlength", "--max-tokens {}"},
    {"generate", "temp", "--temperature {}"},
    {"generate", "n", "--num-samples {}"},
    {"generate", "numreturnsequences", "--num-samples {}"},
    {"generate", "samples", "--num-samples {}"},
    {"generate", "text", "--prompt {}"},
    {"generate", "file", "--prompt-file {}"},
    {"generate", "greedy", "--temperature 0"},
    {"generate", "dosample", "--temperature 0.8; 0 always takes the likeliest token"},
    {"generate", "repeatpenalty", "--repetition-penalty {}"},
    {"generate", "model", "brisk generate RUN: the run needs no flag"},
    {"translate", "text", "brisk translate RUN \"...\": the text needs no flag"},
    {"translate", "file", "--data {}"},
    {"translate", "input", "--data {}"},
    {"translate", "source", "--data {}"},
    {"translate", "numbeams", "--beam {}"},
    {"translate", "beamsize", "--beam {}"},
    {"translate", "numreturnsequences", "--n-best {}"},
    {"translate", "maxlength", "--max-tokens {}"},
    {"translate", "maxnewtokens", "--max-tokens {}"},
    {"translate", "dosample", "--sample"},
    {"translate", "model", "brisk translate RUN: the run needs no flag"},
    {"predict", "text", "brisk predict RUN \"...\": the text needs no flag"},
    {"predict", "file", "--data {}"},
    {"predict", "input", "--data {}"},
    {"predict", "model", "brisk predict RUN: the run needs no flag"},
    {"eval", "model", "brisk eval RUN: the run needs no flag"},
    {"eval", "file", "--data {}"},
    {"export", "out", "--output {}"},
};

// An option of a job: --set says it.
std::string setting_of(const std::string& plain, const std::string& value) {
  Job job;
  for (const Option& option : declare_job_options(job)) {
    std::vector<std::string> spellings = option.aliases;
    spellings.push_back(option.path);
    const bool it = std::any_of(spellings.begin(), spellings.end(), [&](const std::string& spelling) {
      return plain_spelling(spelling.substr(spelling.rfind('.') + 1)) == plain;
    });
    if (!it) continue;
    const bool flag = std::holds_alternative<bool*>(option.field);
    return fmt::format("use --set {}={}", option.path, !value.empty() ? value : flag ? "true" : "...");
  }
  for (const ForeignKey& key : foreign_keys()) {
    if (plain_spelling(key.name) != plain) continue;
    const auto parsed = parse_json_or_discard(value);
    const ForeignAnswer answer = key.answer(value.empty()           ? "true"
                                            : parsed.is_discarded() ? nlohmann::json(value).dump()
                                                                    : parsed.dump());
    if (answer.verdict == ForeignAnswer::Verdict::used) return fmt::format("use --set {}={}", key.name, value);
    return answer.reason;
  }
  return "";
}

}  // namespace

std::string flag_hint(const std::string& command, const std::string& flag, const std::string& value) {
  const std::string plain = plain_spelling(flag);
  for (const Hint& hint : kHints) {
    if (command == hint.command && plain == hint.flag)
      return fmt::format("use {}", fmt::format(fmt::runtime(hint.use), value.empty() ? "..." : value));
  }
  return command == "train" ? setting_of(plain, value) : "";
}

}  // namespace brisk
