// How long a run is: "2e" epochs, "500u" updates (optimizer steps), "10Mt" tokens, "30m" time, or "auto": as long as the Slurm
// allocation that it runs in (train/run/plan/allocation.h).
//
//   const RunLength stop = parse_run_length("1h30m", "training.stop");   // UserError that names the key
//   stop.unit == RunLength::Unit::seconds; stop.amount == 5400;
//
// A number may be a fraction ("0.5e") and may carry K, M or G before u and t. Parts of a time add up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brisk {

struct RunLength {
  enum class Unit : uint8_t { epochs, updates, tokens, seconds, allocation };
  Unit unit = Unit::epochs;
  double amount = 1;  // 0 of an allocation
};

// `key` stands in the message for where the text was found.
RunLength parse_run_length(std::string_view text, std::string_view key);

}  // namespace brisk
