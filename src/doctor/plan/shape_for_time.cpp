#include "doctor/plan/shape_for_time.h"

#include <algorithm>
#include <cmath>

namespace brisk {

std::optional<ShapeForTime> shape_for_time(const std::vector<ShapeCandidate>& candidates, double seconds,
                                           double tokens_per_epoch) {
  std::optional<ShapeForTime> best;
  double least = 0;
  for (const ShapeCandidate& candidate : candidates) {
    if (candidate.parameters <= 0 || candidate.tokens_per_second <= 0) continue;
    const double tokens = candidate.tokens_per_second * seconds;
    const double useful = tokens_per_epoch > 0 ? std::min(tokens, kUsefulEpochs * tokens_per_epoch) : tokens;
    const double apart = std::abs(std::log(useful / (kTokensPerParameter * static_cast<double>(candidate.parameters))));
    if (best && apart >= least) continue;
    least = apart;
    best = {.seconds = seconds,
            .layers = candidate.layers,
            .width = candidate.width,
            .parameters = candidate.parameters,
            .tokens_per_second = candidate.tokens_per_second,
            .tokens = tokens,
            .epochs = tokens_per_epoch > 0 ? tokens / tokens_per_epoch : 0,
            .data_is_short = tokens_per_epoch > 0 && tokens > kUsefulEpochs * tokens_per_epoch};
  }
  return best;
}

std::vector<LayersOfWidth> usual_shapes() {
  constexpr int64_t kWidthOfLayer = 64, kLeastLayers = 2;
  std::vector<LayersOfWidth> shapes;
  for (const int64_t width : {64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 2048})
    shapes.push_back({std::max(kLeastLayers, width / kWidthOfLayer), width});
  return shapes;
}

}  // namespace brisk
