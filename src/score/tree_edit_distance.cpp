#include "score/tree_edit_distance.h"

#include <algorithm>

#include "base/error.h"

namespace brisk {

int OrderedTree::add(int parent, bool is_blank) {
  BRISK_CHECK((parent == kNone) == nodes_.empty() && parent < size(), "a tree has one root, which comes first");
  const int node = size();
  nodes_.push_back({is_blank});
  if (parent == kNone) return node;
  int& last = nodes_[parent].last_child;
  (last == kNone ? nodes_[parent].first_child : nodes_[last].next) = node;
  last = node;
  return node;
}

void TreeEditDistance::Postorder::read(const OrderedTree& tree) {
  const auto& nodes = tree.nodes_;
  *this = {};
  struct Open {
    int node, child, leftmost;  // child: the next to be read
    bool is_keyroot, has_text;
  };
  std::vector<Open> path = {{0, nodes[0].first_child, OrderedTree::kNone, true, false}};
  while (!path.empty()) {
    Open& open = path.back();
    if (open.child != OrderedTree::kNone) {
      const int child = open.child;
      const bool has_sibling_before = child != nodes[open.node].first_child;
      open.child = nodes[child].next;
      path.push_back({child, nodes[child].first_child, OrderedTree::kNone, has_sibling_before, false});
      continue;
    }
    const Open done = open;
    path.pop_back();
    const int number = size();
    const bool is_inner = done.leftmost != OrderedTree::kNone;
    const bool has_text = done.has_text || !nodes[done.node].is_blank;
    leftmost.push_back(is_inner ? done.leftmost : number);
    is_blank.push_back(nodes[done.node].is_blank);
    text.push_back(has_text);
    inner.push_back(is_inner ? inner_count++ : -1);
    if (is_inner && done.is_keyroot) keyroots.push_back(number);
    if (path.empty()) break;
    if (path.back().leftmost == OrderedTree::kNone) path.back().leftmost = leftmost.back();
    path.back().has_text |= has_text;
  }
}

// A leaf becomes one node of the other tree, of which all others are inserted.
int32_t TreeEditDistance::of_subtrees(int i, int j) const {
  if (a_.inner[i] >= 0 && b_.inner[j] >= 0) {
    return subtrees_[static_cast<size_t>(a_.inner[i]) * b_.inner_count + b_.inner[j]];
  }
  const int32_t inserted = std::max(a_.size_of(i), b_.size_of(j)) - 1;
  return inserted + (a_.text[i] && b_.text[j] ? 0 : 1);
}

// The distances of all forests that begin with the first leaf of the one keyroot and that of the other, a row for each node of
// the first. A row is the previous node's, and that before the first leaf of the node's subtree: the latter wait on a stack,
// as subtrees are within each other.
void TreeEditDistance::compare_keyroots(int root_a, int root_b) {
  const int first_a = a_.leftmost[root_a], first_b = b_.leftmost[root_b];
  const int columns = root_b - first_b + 2;
  for (int i = first_a; i <= root_a; ++i) {
    last_with_leftmost_[i] = OrderedTree::kNone;
    if (a_.inner[i] >= 0) last_with_leftmost_[a_.leftmost[i]] = i;
  }
  row_before_.resize(columns);
  row_.resize(columns);
  for (int j = 0; j < columns; ++j) row_before_[j] = j;  // insertions only
  waiting_.clear();
  for (int i = first_a; i <= root_a; ++i) {
    if (last_with_leftmost_[i] != OrderedTree::kNone) waiting_.push_back(row_before_);
    const bool is_leaf = a_.inner[i] < 0, on_path_a = a_.leftmost[i] == first_a;
    const std::vector<int32_t>& before_subtree = is_leaf ? row_before_ : waiting_.back();
    row_[0] = row_before_[0] + 1;
    for (int j = first_b; j <= root_b; ++j) {
      const int column = j - first_b + 1;
      int32_t best = std::min(row_before_[column], row_[column - 1]) + 1;  // deleted, inserted
      if (on_path_a && b_.leftmost[j] == first_b) {
        const int relabelled = a_.is_blank[i] || b_.is_blank[j] ? 1 : 0;
        best = std::min(best, row_before_[column - 1] + relabelled);
        if (!is_leaf && b_.inner[j] >= 0) {
          subtrees_[static_cast<size_t>(a_.inner[i]) * b_.inner_count + b_.inner[j]] = best;
        }
      } else {
        best = std::min(best, before_subtree[b_.leftmost[j] - first_b] + of_subtrees(i, j));
      }
      row_[column] = best;
    }
    if (!is_leaf && last_with_leftmost_[a_.leftmost[i]] == i) waiting_.pop_back();
    std::swap(row_, row_before_);
  }
}

int64_t TreeEditDistance::between(const OrderedTree& a, const OrderedTree& b) {
  BRISK_CHECK(a.size() > 0 && b.size() > 0, "a tree without a root");
  a_.read(a);
  b_.read(b);
  const int root_a = a_.size() - 1, root_b = b_.size() - 1;
  subtrees_.assign(static_cast<size_t>(a_.inner_count) * b_.inner_count, 0);
  last_with_leftmost_.resize(a_.size());
  for (const int i : a_.keyroots) {
    for (const int j : b_.keyroots) compare_keyroots(i, j);
  }
  return of_subtrees(root_a, root_b);
}

}  // namespace brisk
