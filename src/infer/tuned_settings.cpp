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

std::string choices_to_json(const Choices& choices) {
  return Json{{"compute_type", dtype_name(choices.compute_type)},
              {"precision", precision_name(choices.compute_type, choices.products)},
              {"micro_batch_tokens", choices.micro_batch_tokens},
              {"isa", choices.isa},
              {"threads", choices.threads}}
      .dump();
}

Choices choices_from_json(const std::string& text, const std::string& source) {
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
            precision == "tf32"  ? ProductFormat::tf32
            : precision == "fp8" ? ProductFormat::fp8
                                 : ProductFormat::own};
  } catch (const Json::exception& error) {
    user_error(
        "{}: its choices cannot be read ({}); the checkpoint is damaged: remove it to resume from the one before",
        source, error.what());
  }
}

}  // namespace brisk
