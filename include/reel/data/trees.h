#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <reel/data/reading.h>

namespace reel::data {

/// A labelled tree over the words of a sentence.
struct LabelledTree {
  /// A node: a leaf has a word, an inner node children.
  struct Node {
    std::string label;                        ///< the text behind the bracket; may be empty
    std::int64_t value = 0;                   ///< the label as an integer, if `TreeOptions::labels` is set; else 0
    std::vector<std::int64_t> children = {};  ///< the children's indices, in order; empty for a leaf
    std::int64_t word = -1;                   ///< the index of a leaf's word; −1 for an inner node
  };
  std::vector<Node> nodes;         ///< children before their parent; the root is the last one
  std::vector<std::string> words;  ///< the words of the leaves, from left to right
  Source source;                   ///< the line where the tree begins

  /// The root.
  const Node& root() const { return nodes.back(); }
};

/// Options of `read_trees`.
struct TreeOptions {
  /// Integers from `least` to `most`.
  struct Labels {
    std::int64_t least = 0,  ///< the least label; default 0
        most = 4;            ///< the largest label; default 4, for five sentiments
  };
  /// The range of labels that are integers. Nothing (default): labels are any text.
  std::optional<Labels> labels = {};
  std::int64_t most_children = 0;  ///< the most children of a node; 0 (default): any number
  /// The most nodes from the root to a leaf, so that a recursion over the tree fits a stack. Default 1000.
  std::int64_t deepest = 1000;
  bool lower_case = false;  ///< whether A to Z in words become a to z; default false
  /// Whether a tree may extend over several lines, as in the Penn Treebank: its further lines are indented, since a line
  /// that begins with an opening bracket begins another tree. Reading continues there behind a broken tree. Default
  /// false: each line that is not blank is one tree.
  bool several_lines = false;
  ReadOptions reading = {};  ///< what happens to broken trees, and limits
};

/// Reads trees in brackets: `(3 (2 the) (3 film))`, or `(S (NP (DT the) (NN film)) (VP (VBZ ends)))`. A bracket is
/// followed by a label, and then by a word or by other trees. Brackets without a label around a single tree, as the Penn
/// Treebank has them, are left out.
/// Throws: io::FileError, which names the file, if it cannot be read or is too long, and, with the line, for a tree that
/// is not of this form, unless broken trees are skipped.
/// Source: Marcus, Santorini and Marcinkiewicz, Building a large annotated corpus of English (1993); Socher et al.,
/// Recursive deep models for semantic compositionality over a sentiment treebank (EMNLP 2013).
std::vector<LabelledTree> read_trees(const std::string& path, const TreeOptions& options = {},
                                     Location where = Location::here());

}  // namespace reel::data
