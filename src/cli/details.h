// What an evaluation says besides its metrics, as JSON.
//
//   nlohmann::ordered_json json = details_of(model.evaluate({"test.csv"}));     // {"classes": [...], ...}
#pragma once

#include <brisk/model.h>

#include <nlohmann/json.hpp>

namespace brisk {

nlohmann::ordered_json details_of(const Evaluation& evaluation);  // an object, empty where there are none

}  // namespace brisk
