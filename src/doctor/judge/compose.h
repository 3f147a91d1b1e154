// What findings are put together from: numbers as text, values as JSON, fixes.
//
//   finding.fix = set_key("training.precision", json_string("bf16"));
//   finding.evidence = {{"padding", percent_text(0.62), "of the computed rows"}};
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "doctor/judge/finding.h"
#include "doctor/readings/readings.h"

namespace brisk {

std::string percent_text(double share);            // "62 %", "6.2 %", "0.6 %"
std::string ratio_text(double ratio);              // "1.42x"
std::string number_text(double number);            // "1,204", "0.5"
std::string speed_text(double tokens_per_second);  // "12.3K tokens/s"

std::string json_string(std::string_view text);  // plain words
std::string json_number(double number);          // six digits
inline const std::string kJsonAuto = "\"auto\"";

Fix set_key(std::string key, std::string value, std::string advice = {});
Fix advise(std::string advice);

// Puts the learning rates times `factor` into the fix; a rate that is not known is left out. The key that the fix itself
// sets is not repeated.
void scale_rates(Fix& fix, const Job& job, double factor, std::string rule);
// A step of `ratio` times the sequences: updates of AdamW and Muon have a size of their own, whatever the gradient's, so
// their rates follow the square root of the batch.
void follow_batch(Fix& fix, const Job& job, double ratio);

}  // namespace brisk
