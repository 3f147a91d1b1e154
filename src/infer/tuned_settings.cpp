#include "infer/tuned_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostMicroBatchTokens = 16777216;  // as a job may ask for

}  // namespace

std::string tuned_settings_to_json(const TunedSettings& tuned) {
  return Json{{"compute_type", dtype_name(tuned.compute_type)},
              {"precision", precision_name(tuned.compute_type, tuned.products)},
              {"micro_batch_tokens", tuned.micro_batch_tokens},
              {"isa", tuned.isa},
              {"threads", tuned.threads}}
      .dump();
}

TunedSettings tuned_settings_from_json(const std::string& text, const std::string& source) {
  try {
    const Json json = parse_json(text, source, "the checkpoint is damaged: remove it to resume from the one before");
    const auto tokens = json.at("micro_batch_tokens").get<int64_t>();
    if (tokens < 1 || tokens > kMostMicroBatchTokens) {
      user_error(
          "{}: its micro_batch_tokens are {}, expected 1 to {}; the checkpoint is damaged: remove it to resume "
          "from the one before",
          source, tokens, kMostMicroBatchTokens);
    }
    const std::string type = json.at("compute_type");
    const std::string precision = json.value("precision", "");  // earlier ones had no such key
    return {type == "bf16"  ? DType::bf16
            : type == "f16" ? DType::f16
                            : DType::f32,
            tokens, json.value("isa", ""), json.value("threads", int64_t{0}),
            precision == "tf32"  ? GemmFormat::tf32
            : precision == "fp8" ? GemmFormat::fp8
                                 : GemmFormat::own};
  } catch (const Json::exception& error) {
    user_error(
        "{}: its tuned settings cannot be read ({}); the checkpoint is damaged: remove it to resume from the one "
        "before",
        source, error.what());
  }
}

}  // namespace brisk
