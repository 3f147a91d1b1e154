#include "optim/shards.h"

#include <algorithm>

#include "base/error.h"

namespace brisk {

namespace {

constexpr int64_t kElementsOfLine = 16;

// A range that is cut anywhere, on a cache line, or nowhere.
struct Piece {
  int64_t begin, end;
  double work;
  bool divides;
};

// AdamW takes about 0.7 ns for an element; Muon's products, about 25 FLOP for an element and row of a matrix whose shorter
// side they square, a third of that for each row.
double work_of_muon(int64_t rows, int64_t cols) {
  constexpr double kForEachRow = 0.35;
  return static_cast<double>(rows * cols) * (1 + kForEachRow * static_cast<double>(std::min(rows, cols)));
}

std::vector<Piece> pieces_of(const ParameterStore& store, bool has_muon) {
  std::vector<Piece> pieces;
  const std::vector<Parameter*>& order = store.flat_order();
  for (size_t i = 0; i < order.size(); ++i) {
    const Parameter& parameter = *order[i];
    const ParameterSpec& spec = parameter.spec;
    if (!spec.trained) break;
    const int64_t end = i + 1 < order.size() ? order[i + 1]->offset : store.flat_gradient().cols;
    if (!has_muon || !spec.hidden) {
      pieces.push_back({parameter.offset, end, static_cast<double>(end - parameter.offset), true});
      continue;
    }
    const std::vector<int64_t> parts = spec.parts.empty() ? std::vector<int64_t>{spec.rows} : spec.parts;
    int64_t begin = parameter.offset;
    for (size_t part = 0; part < parts.size(); ++part) {
      const int64_t next = part + 1 < parts.size() ? begin + parts[part] * spec.cols : end;
      pieces.push_back({begin, next, work_of_muon(parts[part], spec.cols), false});
      begin = next;
    }
  }
  return pieces;
}

}  // namespace

std::vector<int64_t> shard_bounds(const ParameterStore& store, bool has_muon, int64_t shards) {
  BRISK_CHECK(shards > 0, "{} shards", shards);
  const std::vector<Piece> pieces = pieces_of(store, has_muon);
  double all = 0;
  for (const Piece& piece : pieces) all += piece.work;
  std::vector<int64_t> bounds = {0};
  size_t at = 0;
  double before = 0;  // work of the pieces before it
  for (int64_t shard = 1; shard < shards; ++shard) {
    const double wanted = all * (static_cast<double>(shard) / static_cast<double>(shards));
    while (at < pieces.size() && before + pieces[at].work <= wanted) before += pieces[at++].work;
    if (at == pieces.size()) {
      bounds.push_back(store.flat_gradient().cols);
      continue;
    }
    const Piece& piece = pieces[at];
    const double share = (wanted - before) / piece.work;
    int64_t place = share < 0.5 ? piece.begin : piece.end;
    if (piece.divides) {
      const auto lines = static_cast<int64_t>(share * static_cast<double>(piece.end - piece.begin)) / kElementsOfLine;
      place = piece.begin + lines * kElementsOfLine;
    }
    bounds.push_back(place);
  }
  bounds.push_back(store.flat_gradient().cols);
  return bounds;
}

}  // namespace brisk
