#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tape_list.h"

namespace reel::detail {

/// A node of the graph that a tape has recorded: an entry, or a leaf, that is a parameter or a watched tensor.
struct TapeNode {
  /// An output of another node.
  struct Source {
    std::uint32_t node, output;
  };
  const Entry* entry = nullptr;                // null: a leaf
  const TapeList::LeafSlot* leaf = nullptr;    // null: an entry
  std::uint32_t first_output, output_count;    // slots
  std::uint32_t first_input, input_count = 0;  // in the list of all sources: those of the inputs that are tracked
};

/// The nodes that a thread's tapes have recorded: leaves, then entries in the order of execution.
class TapeNodes {
 public:
  explicit TapeNodes(const TapeList& list);

  const std::vector<TapeNode>& all() const { return nodes_; }
  std::span<const TapeNode::Source> inputs(const TapeNode& node) const {
    return std::span(sources_).subspan(node.first_input, node.input_count);
  }

 private:
  std::vector<TapeNode> nodes_;
  std::vector<TapeNode::Source> sources_;
};

/// The list of this thread's open tape. Throws: TapeError if another thread opened the tape, or this is within the
/// function of a checkpoint.
const TapeList& list_of_open_tape(const char* function, const void* tape, Location where);

}  // namespace reel::detail
