#include "ops/cpu/simd.h"
#include "ops/interpolate/interpolate_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// Columns that are worked on at once, in the first cache; groups may end anywhere in them.
constexpr int64_t kInterpolated = 256;

// The shares of columns [first, first + count), one for each.
template <typename T>
void spread_shares(const T* share, int64_t width, int64_t first, int64_t count, float* spread) {
  int64_t group = first / width, left = width - first % width;
  float number = load(share + group, 1)[0];
  for (int64_t c = 0; c < count; ++c) {
    if (left-- == 0) {
      number = load(share + ++group, 1)[0];
      left = width - 1;
    }
    spread[c] = number;
  }
}

template <typename T>
void put(T* to, Vec value, int64_t lanes, bool adds) {
  store(to, adds ? load(to, lanes) + value : value, lanes);
}

}  // namespace

void interpolate_forward_rows(const InterpolateForward& op, int64_t begin, int64_t end) {
  const int64_t width = op.y.cols / op.share.cols;
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.target.type, [&](auto of_target) {
      with_element(op.share.type, [&](auto of_share) {
        using X = decltype(of_x);  // y is of this type, too
        for (int64_t row = begin; row < end; ++row) {
          const auto* share = op.share.as<decltype(of_share)>() + row * op.share.stride;
          for (int64_t first = 0; first < op.y.cols; first += kInterpolated) {
            const int64_t count = std::min(kInterpolated, op.y.cols - first);
            float shares[kInterpolated];
            spread_shares(share, width, first, count, shares);
            const X* x = op.x.as<X>() + row * op.x.stride + first;
            const auto* target = op.target.as<decltype(of_target)>() + row * op.target.stride + first;
            X* y = op.y.as<X>() + row * op.y.stride + first;
            for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
              const Vec from = load(x + c, lanes);
              store(y + c, fma(load(shares + c, lanes), load(target + c, lanes) - from, from), lanes);
            });
          }
        }
      });
    });
  });
}

void interpolate_backward_rows(const InterpolateBackward& op, int64_t begin, int64_t end) {
  const int64_t width = op.dy.cols / op.share.cols;
  with_element(op.x.type, [&](auto of_x) {  // dy and dx are of this type, too; dtarget and dshare of their own's
    with_element(op.target.type, [&](auto of_target) {
      with_element(op.share.type, [&](auto of_share) {
        using X = decltype(of_x);
        using Target = decltype(of_target);
        using Share = decltype(of_share);
        for (int64_t row = begin; row < end; ++row) {
          const Share* share = op.share.as<Share>() + row * op.share.stride;
          int64_t group = 0, left = width;
          float sum = 0;
          for (int64_t first = 0; first < op.dy.cols; first += kInterpolated) {
            const int64_t count = std::min(kInterpolated, op.dy.cols - first);
            float shares[kInterpolated], slopes[kInterpolated];
            spread_shares(share, width, first, count, shares);
            const X* x = op.x.as<X>() + row * op.x.stride + first;
            const Target* target = op.target.as<Target>() + row * op.target.stride + first;
            const X* dy = op.dy.as<X>() + row * op.dy.stride + first;
            X* dx = op.dx ? op.dx.as<X>() + row * op.dx.stride + first : nullptr;
            Target* dtarget = op.dtarget ? op.dtarget.as<Target>() + row * op.dtarget.stride + first : nullptr;
            for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
              const Vec slope = load(dy + c, lanes), there = load(shares + c, lanes);
              store(slopes + c, slope * (load(target + c, lanes) - load(x + c, lanes)), lanes);
              if (dx != nullptr) put(dx + c, slope - slope * there, lanes, op.dx_adds);
              if (dtarget != nullptr) put(dtarget + c, slope * there, lanes, op.dtarget_adds);
            });
            if (!op.dshare) continue;
            Share* dshare = op.dshare.as<Share>() + row * op.dshare.stride;
            for (int64_t c = 0; c < count; ++c) {
              sum += slopes[c];
              if (--left > 0) continue;
              put(dshare + group++, set1(sum), 1, op.dshare_adds);
              sum = 0;
              left = width;
            }
          }
        }
      });
    });
  });
}

}  // namespace brisk::BRISK_ISA
