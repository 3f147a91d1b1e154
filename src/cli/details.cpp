#include "cli/details.h"

#include "base/parse_json.h"

namespace brisk {

nlohmann::ordered_json details_of(const Evaluation& evaluation) {
  return parse_own_json(evaluation.details_json.empty() ? "{}" : evaluation.details_json);
}

}  // namespace brisk
