#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/element.h"
#include "ops/grid_attention/grid_attention.h"

namespace brisk {

int64_t grid_bias_parts(const GridAttentionShape& shape, int64_t sequences) {
  // Enough for the threads of a large machine, which take some heads at once; and of large windows, at most 16 MiB of sums.
  constexpr int64_t kTasks = 256, kMostFloats = int64_t{1} << 22;
  const int64_t places = shape.windows.places(), floats = shape.heads * places * places;
  const int64_t wanted = std::min((kTasks + shape.heads - 1) / shape.heads, std::max<int64_t>(1, kMostFloats / floats));
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, sequences * shape.windows.regions()));
}

namespace ref {

namespace {

// The rows of one region of one sequence, and their places.
struct RegionRows {
  RegionRows(const GridAttentionForward& op, int64_t sequence, int32_t number) {
    const GridWindows& windows = op.shape.windows;
    if (op.rows.starts[sequence + 1] == op.rows.starts[sequence]) return;
    const GridRegion region = windows.region(number);
    for (int32_t i = 0; i < windows.rows_of(region); ++i) {
      rows.push_back(op.rows.starts[sequence] + windows.row_of(region, i));
      places.push_back(windows.place_of(region, i));
    }
  }
  std::vector<int64_t> rows, places;
};

// The columns of a head.
struct HeadColumns {
  HeadColumns(const GridAttentionShape& shape, int64_t head)
      : width(shape.head_width), q(head * width), k(q + shape.heads * width), v(k + shape.heads * width) {}
  int64_t width, q, k, v;
};

double product_of_rows(const Tensor& a, int64_t a_row, int64_t a_col, const Tensor& b, int64_t b_row, int64_t b_col,
                       int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += double{element(a, a_row, a_col + c)} * element(b, b_row, b_col + c);
  return sum;
}

// Of row i with all rows of its region.
std::vector<double> region_scores(const GridAttentionForward& op, const RegionRows& region, int64_t head, size_t i) {
  const HeadColumns columns(op.shape, head);
  std::vector<double> scores(region.rows.size());
  for (size_t j = 0; j < scores.size(); ++j) {
    scores[j] = double{op.shape.scale()} *
                product_of_rows(op.qkv, region.rows[i], columns.q, op.qkv, region.rows[j], columns.k, columns.width);
    if (op.bias) scores[j] += element(op.bias, head, region.places[i] * op.shape.windows.places() + region.places[j]);
  }
  return scores;
}

uint32_t draws_of(const GridAttentionForward& op, int64_t head, int64_t row) {
  return op.dropout.active() ? attention_dropout(op.dropout, head).row_key(op.rows, row) : 0;
}

template <typename Body>
void for_each_region(const GridAttentionForward& op, const Body& body) {
  for (int64_t s = 0; s < op.rows.sequences; ++s) {
    for (int32_t number = 0; number < op.shape.windows.regions(); ++number) body(RegionRows(op, s, number));
  }
}

void clear_tensor(const Tensor& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) set_element(t, r, c, 0);
  }
}

}  // namespace

void grid_attention_forward(const GridAttentionForward& op) {
  clear_tensor(op.y);
  for_each_region(op, [&](const RegionRows& region) {
    for (int64_t head = 0; head < op.shape.heads; ++head) {
      const HeadColumns columns(op.shape, head);
      for (size_t i = 0; i < region.rows.size(); ++i) {
        const std::vector<double> scores = region_scores(op, region, head, i);
        const double largest = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (const double score : scores) sum += std::exp(score - largest);
        const uint32_t draws = draws_of(op, head, region.rows[i]);
        for (int64_t c = 0; c < columns.width; ++c) {
          double value = 0;
          for (size_t j = 0; j < scores.size(); ++j) {
            value += std::exp(scores[j] - largest) / sum * op.dropout.factor(draws, static_cast<int64_t>(j)) *
                     element(op.qkv, region.rows[j], columns.v + c);
          }
          set_element(op.y, region.rows[i], columns.q + c, value);
        }
        if (op.log_sum_exp) set_element(op.log_sum_exp, region.rows[i], head, largest + std::log(sum));
      }
    }
  });
}

void grid_attention_backward(const GridAttentionBackward& op) {
  const GridAttentionForward& forward = op.forward;
  // Many queries add to one key's gradient: sum in double, store once.
  std::vector<double> dqkv(static_cast<size_t>(op.dqkv.rows * op.dqkv.cols));
  std::vector<double> dbias(static_cast<size_t>(op.dbias.rows * op.dbias.cols));
  const auto gradient = [&](int64_t row, int64_t col) -> double& {
    return dqkv[static_cast<size_t>(row * op.dqkv.cols + col)];
  };
  for_each_region(forward, [&](const RegionRows& region) {
    for (int64_t head = 0; head < forward.shape.heads; ++head) {
      const HeadColumns columns(forward.shape, head);
      for (size_t i = 0; i < region.rows.size(); ++i) {
        const int64_t row = region.rows[i];
        const std::vector<double> scores = region_scores(forward, region, head, i);
        const double log_sum_exp = element(forward.log_sum_exp, row, head);
        const uint32_t draws = draws_of(forward, head, row);
        // d(loss)/d(score_j) = p_j (kept_j dy.v_j - dy.y)
        const double dy_dot_y = product_of_rows(op.dy, row, columns.q, forward.y, row, columns.q, columns.width);
        for (size_t j = 0; j < scores.size(); ++j) {
          const int64_t key = region.rows[j];
          const double probability = std::exp(scores[j] - log_sum_exp);
          const double keep = forward.dropout.factor(draws, static_cast<int64_t>(j));
          const double slope = product_of_rows(op.dy, row, columns.q, forward.qkv, key, columns.v, columns.width);
          const double dsum = probability * (keep * slope - dy_dot_y), dscore = dsum * forward.shape.scale();
          if (op.dbias) {
            const int64_t pair = region.places[i] * forward.shape.windows.places() + region.places[j];
            dbias[static_cast<size_t>(head * op.dbias.cols + pair)] += dsum;
          }
          for (int64_t c = 0; c < columns.width; ++c) {
            gradient(row, columns.q + c) += dscore * element(forward.qkv, key, columns.k + c);
            gradient(key, columns.k + c) += dscore * element(forward.qkv, row, columns.q + c);
            gradient(key, columns.v + c) += probability * keep * element(op.dy, row, columns.q + c);
          }
        }
      }
    }
  });
  for (size_t i = 0; i < dqkv.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    set_element(op.dqkv, at / op.dqkv.cols, at % op.dqkv.cols, dqkv[i]);
  }
  for (size_t i = 0; i < dbias.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    set_element(op.dbias, at / op.dbias.cols, at % op.dbias.cols, dbias[i]);
  }
}

}  // namespace ref

}  // namespace brisk
