#include <cmath>

#include "checkpoint/checkpoint_state.h"
#include "fuzz/fuzz_input.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::unless_refused([&] {
    const CheckpointState state = checkpoint_state_from_json_text(std::string(fuzz::text_of(data, size)), "state.json");
    fuzz::require(state.step >= 0 && state.cursor.epoch >= 0 && state.cursor.epoch <= state.step &&
                      state.cursor.step >= 0 && state.cursor.step <= state.step && state.best_step <= state.step,
                  "steps are counted");
    fuzz::require(state.elapsed_seconds >= 0 && state.progress >= 0 && state.progress <= 1, "time is a number");
    const std::string written = checkpoint_state_to_json_text(state);
    CheckpointState again;
    fuzz::require(fuzz::unless_refused([&] { again = checkpoint_state_from_json_text(written, "state.json"); }),
                  "what is written can be read");
    fuzz::require(checkpoint_state_to_json_text(again) == written, "and is the same");
  });
  return 0;
}
