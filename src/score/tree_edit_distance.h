// The edit distance of two ordered trees (Zhang and Shasha, 1989): the fewest nodes to insert, to delete (its children take
// its place) and to relabel. Labels are not compared: a node is blank or it is not, and to relabel costs 1 where either of
// the two is blank, as the measure of documents' structure has it (steds.h).
//
//   OrderedTree tree;
//   const int root = tree.add(OrderedTree::kNone);
//   tree.add(root); tree.add(root);                    // its children, from left to right
//   TreeEditDistance().between(tree, other)
//
// Time is O(n m d e), with d and e the depths; memory O(n m) in nodes that have children, and linear in the others.
#pragma once

#include <cstdint>
#include <vector>

namespace brisk {

class OrderedTree {
 public:
  static constexpr int kNone = -1;

  // A node behind the last child of `parent`; kNone: the root, which is the first to be added.
  int add(int parent, bool is_blank = false);
  int size() const { return static_cast<int>(nodes_.size()); }

 private:
  friend class TreeEditDistance;
  struct Node {
    bool is_blank;
    int first_child = kNone, last_child = kNone, next = kNone;
  };
  std::vector<Node> nodes_;
};

class TreeEditDistance {
 public:
  // Of two trees that have a root each.
  int64_t between(const OrderedTree& a, const OrderedTree& b);

 private:
  // A tree's nodes from the left, children before their parent.
  struct Postorder {
    std::vector<int> leftmost;            // by the node: the first leaf below it, or itself
    std::vector<uint8_t> is_blank, text;  // of the node; whether a node of its subtree is not
    std::vector<int> inner;               // by the node: its number among those with children; -1: it has none
    std::vector<int> keyroots;            // with children and, but for the root, a sibling before them
    int inner_count = 0;

    void read(const OrderedTree& tree);
    int size() const { return static_cast<int>(leftmost.size()); }
    int size_of(int node) const { return node - leftmost[node] + 1; }
  };

  int32_t of_subtrees(int i, int j) const;
  void compare_keyroots(int root_a, int root_b);

  Postorder a_, b_;
  std::vector<int32_t> subtrees_;              // [inner nodes of a, of b]: the distance of their subtrees
  std::vector<std::vector<int32_t>> waiting_;  // rows of forests that a later node of `a` needs, the latest last
  std::vector<int32_t> row_, row_before_;
  std::vector<int>
      last_with_leftmost_;  // by the leaf: the last node with children within the keyroot that begins with it
};

}  // namespace brisk
