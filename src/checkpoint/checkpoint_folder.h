// The folders of checkpoints and the files in them, as save_checkpoint() and whoever writes one together with others
// (checkpoint/shared_checkpoint.h) name, make and commit them. Internal to this module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_tensors.h"
#include "hub/formats/safetensors.h"

namespace brisk {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

std::string folder_of_checkpoints(const std::string& run);
std::string name_of_checkpoint(int64_t step);  // "step-00000123"
// Its step; nothing for any other name.
std::optional<int64_t> step_of_name(std::string_view name);
// The step of ".step-00000123.partial" and its like; nothing for any other name.
std::optional<int64_t> hidden_step_of(std::string_view name, std::string_view ending);
// A name with a dot is no checkpoint, whatever state its files are in.
std::string partial_path(const std::string& run, int64_t step);
std::string deleted_path(const std::string& run, int64_t step);
std::string checkpoint_path(const std::string& run, int64_t step);

// partial_path(), empty. `made` is true from when on there may be something to remove again.
void make_partial_folder(const std::string& run, int64_t step, bool& made);
// Makes the partial folder, whose files are flushed, the checkpoint.
void commit_partial_folder(const std::string& run, int64_t step);
// What a save that failed says: the reason, and what is kept.
std::string save_problem(const std::string& run, int64_t step, const std::string& reason);

// Has the metadata and the tensors of a checkpoint's file.
SafetensorsWriter writer_of(const std::string& path, int64_t step, bool is_model,
                            const std::vector<CheckpointTensor>& tensors);

}  // namespace brisk
