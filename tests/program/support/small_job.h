// Jobs and texts small enough that a whole training run takes a fraction of a second.
//
//   TemporaryFolder folder;
//   write_text(folder / "text.txt", english_like_text(200));
//   Json job = small_job();
//   job["training"]["max_steps"] = 20;
//   write_job(folder, job);                                           // folder/job.json
//   run_brisk({"train", "job.json", "--output", "run"}, folder);
//   EXPECT_EQ(curve_of(folder / "run"), curve_of(folder / "other"));  // every field but the timing ones, to the bit
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program/support/program.h"

namespace brisk::program {

using Json = nlohmann::json;

// Sentences with subjects, verbs and objects, one a line; the same for the same arguments everywhere.
std::string english_like_text(int64_t lines, uint64_t seed = 1);

// Two layers 32 wide over text.txt, a document a line; one thread, so that a busy machine does not slow it down much.
Json small_job();

// Returns the path.
std::string write_job(const TemporaryFolder& folder, const Json& job, const std::string& name = "job.json");

// The lines of metrics.jsonl; empty where there is no file.
std::vector<Json> metrics_of(const std::string& run);
std::vector<Json> curve_of(const std::string& run);  // without what a clock says
std::vector<Json> step_lines(const std::vector<Json>& lines);
std::vector<Json> evaluation_lines(const std::vector<Json>& lines);

// model.safetensors of the checkpoint of the highest step.
std::string last_model_bytes(const std::string& run);
std::vector<std::string> checkpoints_of(const std::string& run);  // names, the oldest first

Json read_json(const std::string& path);
std::vector<std::string> keys_of(const Json& object);

// Writes text.txt and job.json, trains into `run` and expects it to go well.
Outcome train_small(const TemporaryFolder& folder, const Json& job, const std::string& run,
                    const ProcessOptions& options = {});

}  // namespace brisk::program
