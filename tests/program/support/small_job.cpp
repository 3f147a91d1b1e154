#include "program/support/small_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <sstream>

namespace brisk::program {

std::string english_like_text(int64_t lines, uint64_t seed) {
  static constexpr std::array<const char*, 12> kWho = {"farmer", "teacher", "river",  "child",  "old man", "queen",
                                                       "dog",    "sailor",  "doctor", "garden", "horse",   "letter"};
  static constexpr std::array<const char*, 6> kHow = {"little", "red", "quiet", "tired", "happy", "great"};
  static constexpr std::array<const char*, 8> kDoes = {"finds",   "follows", "carries", "remembers",
                                                       "watches", "leaves",  "answers", "forgets"};
  static constexpr std::array<const char*, 6> kWhere = {"in the morning",   "near the water", "before the rain",
                                                        "under the bridge", "at the market",  "after the long winter"};
  std::mt19937_64 random(seed);  // its numbers are the same everywhere; those of distributions are not
  const auto pick = [&](const auto& words) { return std::string(words[random() % words.size()]); };
  std::string text;
  for (int64_t line = 0; line < lines; ++line) {
    for (uint64_t sentence = 0, sentences = 1 + random() % 3; sentence < sentences; ++sentence) {
      if (sentence > 0) text += ' ';
      text += "The " + (random() % 2 == 0 ? pick(kHow) + " " : "") + pick(kWho) + " " + pick(kDoes) + " the " +
              pick(kWho) + (random() % 3 == 0 ? "" : " " + pick(kWhere)) + ".";
    }
    text += '\n';
  }
  return text;
}

Json small_job() {
  return {{"model", {{"d_model", 32}, {"num_layers", 2}, {"num_heads", 2}, {"vocab_size", 320}}},
          {"training",
           {{"max_length", 32},
            {"batch_size", 8},
            {"max_steps", 30},
            {"learning_rate", 3e-3},
            {"precision", "fp32"},
            {"threads", 1},
            {"logging_steps", 1},
            {"eval_steps", 10000},  // at the end only
            {"save_steps", 10000}}},
          {"data", {{"train", {"text.txt"}}, {"document", "line"}}}};
}

std::string write_job(const TemporaryFolder& folder, const Json& job, const std::string& name) {
  write_text(folder / name, job.dump(2));
  return folder / name;
}

std::vector<Json> metrics_of(const std::string& run) {
  std::vector<Json> lines;
  std::istringstream text(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::vector<Json> curve_of(const std::string& run) {
  std::vector<Json> lines = metrics_of(run);
  for (Json& line : lines) {
    line.erase("tokens_per_second");
    line.erase("step_ms");
    line.erase("communication_ms");
    line.erase("hidden_communication_ms");
    line.erase("seconds");
  }
  return lines;
}

namespace {

std::vector<Json> lines_with(const std::vector<Json>& lines, const char* key) {
  std::vector<Json> chosen;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(chosen),
               [&](const Json& line) { return line.contains(key); });
  return chosen;
}

}  // namespace

std::vector<Json> step_lines(const std::vector<Json>& lines) { return lines_with(lines, "loss"); }
std::vector<Json> evaluation_lines(const std::vector<Json>& lines) { return lines_with(lines, "validation_loss"); }

std::vector<std::string> checkpoints_of(const std::string& run) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints", error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string last_model_bytes(const std::string& run) {
  const std::vector<std::string> names = checkpoints_of(run);
  return names.empty() ? "" : read_text(run + "/checkpoints/" + names.back() + "/model.safetensors");
}

Json read_json(const std::string& path) { return Json::parse(read_text(path)); }

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

Outcome train_small(const TemporaryFolder& folder, const Json& job, const std::string& run,
                    const ProcessOptions& options) {
  if (!std::filesystem::exists(folder / "text.txt")) write_text(folder / "text.txt", english_like_text(300));
  write_job(folder, job, run + ".json");
  const Outcome outcome = run_brisk({"train", run + ".json", "--output", run}, folder, options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(outcome.timed_out);
  return outcome;
}

}  // namespace brisk::program
