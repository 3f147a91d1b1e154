// A page of Markdown as DIMTDA's measures read it (codes/evaluate.py of github.com/liangyupu/DIMTDA): what its text is
// without marks, tables and mathematics, and the tree of its headings and lines.
//
//   text_of_markdown("## Results\n\nIt is *good*: \\(x=1\\).")            // "   Results   It is  good :  ." (on one line)
//   tree_of_markdown("# A\ntext\n# B")                                  // root: title, A: text, B
//
// What is read is Nougat's Markdown (.mmd): mathematics is \( \) and \[ \], tables are \begin{table} or \begin{tabular}. Both
// functions first undo what the decoding of a WordPiece tokenizer leaves: <bos>, <eos>, <pad> and <unk>, "##" within a word,
// and spaces behind "\" and within "{ }". White space is Python's.
#pragma once

#include <string>
#include <string_view>

#include "score/tree_edit_distance.h"

namespace brisk {

enum class MarkdownParts : uint8_t {
  kAll,       // only marks ("#", "*", "_") and line ends become spaces
  kTextOnly,  // tables and mathematics do, too
};
std::string text_of_markdown(std::string_view page, MarkdownParts parts = MarkdownParts::kTextOnly);

// The root's first child is the title, the others are the headings: lines that begin with "#", whatever their level. The
// lines that follow a heading are its children; those of a page that come before any are the title's. Empty lines are no
// nodes. Lines below a heading whose text an earlier heading has are that one's. A heading without text is a blank node, and
// the lines below it are the title's.
OrderedTree tree_of_markdown(std::string_view page);

}  // namespace brisk
