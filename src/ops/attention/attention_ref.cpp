#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/element.h"

namespace brisk::ref {

namespace {

// One query of one head: what it sees and with which probabilities.
struct QueryRow {
  int64_t row;          // of q, y
  int64_t first_key;    // row of k, v
  int64_t visible;      // keys it sees: first_key .. first_key + visible - 1
  int64_t position;     // among the keys
  uint32_t random_row;  // the key of its dropout draws
};

template <typename Body>
void for_each_query(const AttentionForward& op, int64_t head, const Body& body) {
  const RowSet& queries = op.queries;
  for (int64_t s = 0; s < queries.sequences; ++s) {
    const int64_t begin = queries.starts[s], count = queries.starts[s + 1] - begin;
    const int64_t keys = op.k_end[s] - op.k_begin[s];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t visible = op.shape.causal ? std::max<int64_t>(0, keys - count + i + 1) : keys;
      uint32_t random_row = 0;
      if (op.dropout.active()) {
        random_row = attention_dropout(op.dropout, head).row_key(queries, begin + i);
      }
      body(QueryRow{begin + i, op.k_begin[s], visible, first_position(op.shape, count, keys) + i, random_row});
    }
  }
}

double dot(const Tensor& a, int64_t a_row, int64_t a_col, const Tensor& b, int64_t b_row, int64_t b_col,
           int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += double{element(a, a_row, a_col + c)} * element(b, b_row, b_col + c);
  return sum;
}

std::vector<double> scores_of(const AttentionForward& op, const QueryRow& query, int64_t head) {
  const int64_t width = op.shape.head_width, kv_head = head / (op.shape.heads / op.shape.kv_heads);
  std::vector<double> scores(static_cast<size_t>(query.visible));
  for (int64_t j = 0; j < query.visible; ++j) {
    scores[static_cast<size_t>(j)] =
        double{op.shape.scale} * dot(op.q, query.row, head * width, op.k, query.first_key + j, kv_head * width, width);
    if (op.bias) scores[static_cast<size_t>(j)] += element(op.bias, head, op.bias.cols / 2 + j - query.position);
  }
  return scores;
}

// The mean over the heads of what a query gives its keys, after dropout.
std::vector<double> mean_weights(const AttentionForward& op, const QueryRow& query) {
  std::vector<double> weights(static_cast<size_t>(std::max<int64_t>(0, query.visible)));
  for (int64_t head = 0; head < op.shape.heads; ++head) {
    const std::vector<double> scores = scores_of(op, query, head);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const double score : scores) largest = std::max(largest, score);
    for (const double score : scores) sum += std::exp(score - largest);
    const uint32_t random_row =
        op.dropout.active() ? attention_dropout(op.dropout, head).row_key(op.queries, query.row) : 0;
    for (size_t j = 0; j < weights.size(); ++j) {
      const double probability = std::exp(scores[j] - largest) / sum;
      weights[j] +=
          probability * op.dropout.factor(random_row, static_cast<int64_t>(j)) / static_cast<double>(op.shape.heads);
    }
  }
  return weights;
}

// What the entropy's gradient adds to that of each probability after dropout.
std::vector<double> entropy_slopes(const AttentionBackward& op, const QueryRow& query) {
  std::vector<double> slopes = mean_weights(op.forward, query);
  const double scale = -double{element(op.dentropy, query.row, 0)} / static_cast<double>(op.forward.shape.heads);
  for (double& w : slopes) w = scale * (std::log(w + kEntropyEpsilon) + w / (w + kEntropyEpsilon));
  return slopes;
}

}  // namespace

void attention_forward(const AttentionForward& op) {
  const int64_t width = op.shape.head_width;
  for (int64_t head = 0; head < op.shape.heads; ++head) {
    const int64_t kv_head = head / (op.shape.heads / op.shape.kv_heads);
    for_each_query(op, head, [&](const QueryRow& query) {
      const std::vector<double> scores = scores_of(op, query, head);
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (const double score : scores) largest = std::max(largest, score);
      for (const double score : scores) sum += std::exp(score - largest);
      // A query that sees no key answers 0.
      for (int64_t c = 0; c < width; ++c) {
        double value = 0;
        for (int64_t j = 0; j < query.visible; ++j) {
          const double probability = std::exp(scores[static_cast<size_t>(j)] - largest) / sum;
          value += probability * op.dropout.factor(query.random_row, j) *
                   element(op.v, query.first_key + j, kv_head * width + c);
        }
        set_element(op.y, query.row, head * width + c, value);
      }
      if (op.log_sum_exp) set_element(op.log_sum_exp, query.row, head, largest + std::log(sum));
    });
  }
  if (!op.entropy) return;
  for_each_query(op, 0, [&](const QueryRow& query) {
    double entropy = 0;
    for (const double w : mean_weights(op, query)) entropy -= w * std::log(w + kEntropyEpsilon);
    set_element(op.entropy, query.row, 0, entropy);
  });
}

void attention_backward(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  const int64_t width = forward.shape.head_width, kv_columns = forward.shape.kv_heads * width;
  // Many queries add to one key's gradient: sum in double, store once.
  std::vector<double> dk(static_cast<size_t>(forward.k.rows * kv_columns)), dv(dk.size());
  std::vector<double> dbias(static_cast<size_t>(op.dbias.rows * op.dbias.cols));

  for (int64_t head = 0; head < forward.shape.heads; ++head) {
    const int64_t kv_column = head / (forward.shape.heads / forward.shape.kv_heads) * width;
    for_each_query(forward, head, [&](const QueryRow& query) {
      const std::vector<double> scores = scores_of(forward, query, head);
      const double log_sum_exp = element(forward.log_sum_exp, query.row, head);
      // d(loss)/d(score_j) = p_j (kept_j dy.v_j - dy.y)
      const double dy_dot_y = dot(op.dy, query.row, head * width, forward.y, query.row, head * width, width);
      std::vector<double> dq(static_cast<size_t>(width)), of_entropy;
      if (op.dentropy) of_entropy = entropy_slopes(op, query);
      const auto keep_of = [&](int64_t j) { return double{forward.dropout.factor(query.random_row, j)}; };
      double entropy_dot = 0;  // the probabilities' share in what the entropy's gradient adds
      for (int64_t j = 0; op.dentropy && j < query.visible; ++j) {
        const double probability = std::exp(scores[static_cast<size_t>(j)] - log_sum_exp);
        entropy_dot += probability * keep_of(j) * of_entropy[static_cast<size_t>(j)];
      }
      for (int64_t j = 0; j < query.visible; ++j) {
        const int64_t key_row = query.first_key + j;
        const double probability = std::exp(scores[static_cast<size_t>(j)] - log_sum_exp);
        const double keep = keep_of(j);
        double slope = dot(op.dy, query.row, head * width, forward.v, key_row, kv_column, width);
        if (op.dentropy) slope += of_entropy[static_cast<size_t>(j)];
        const double dsum = probability * (keep * slope - dy_dot_y - entropy_dot);
        if (op.dbias) {
          dbias[static_cast<size_t>(head * op.dbias.cols + op.dbias.cols / 2 + j - query.position)] += dsum;
        }
        const double dscore = dsum * forward.shape.scale;
        for (int64_t c = 0; c < width; ++c) {
          const size_t at = static_cast<size_t>(key_row * kv_columns + kv_column + c);
          dq[static_cast<size_t>(c)] += dscore * element(forward.k, key_row, kv_column + c);
          dk[at] += dscore * element(forward.q, query.row, head * width + c);
          dv[at] += probability * keep * element(op.dy, query.row, head * width + c);
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        set_element(op.dq, query.row, head * width + c, dq[static_cast<size_t>(c)]);
      }
    });
  }

  for (size_t i = 0; i < dbias.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    set_element(op.dbias, at / op.dbias.cols, at % op.dbias.cols, dbias[i]);
  }
  for (int64_t s = 0; s < forward.queries.sequences; ++s) {
    for (int64_t row = forward.k_begin[s]; row < forward.k_end[s]; ++row) {
      for (int64_t c = 0; c < kv_columns; ++c) {
        set_element(op.dk, row, c, dk[static_cast<size_t>(row * kv_columns + c)]);
        set_element(op.dv, row, c, dv[static_cast<size_t>(row * kv_columns + c)]);
      }
    }
  }
}

}  // namespace brisk::ref
