#include "tape_nodes.h"

#include <algorithm>

#include "../core/context.h"
#include "../core/op_error.h"

namespace reel::detail {

TapeNodes::TapeNodes(const TapeList& list) {
  // By slot, the index of the node of which it is an output, plus 1; 0: none.
  std::vector<std::uint32_t> node_of(list.slot_count(), 0);
  auto add = [&](TapeNode node) {
    for (std::uint32_t i = 0; i < node.output_count && node.first_output + i < node_of.size(); ++i)
      node_of[node.first_output + i] = static_cast<std::uint32_t>(nodes_.size()) + 1;
    nodes_.push_back(node);
  };
  for (const TapeList::LeafSlot& leaf : list.leaves())
    add({.leaf = &leaf, .first_output = leaf.slot, .output_count = 1, .first_input = 0});
  std::vector<const Entry*> entries;
  entries.reserve(list.entry_count());
  for (const Entry* entry = list.last(); entry; entry = entry->previous) entries.push_back(entry);
  std::reverse(entries.begin(), entries.end());
  for (const Entry* entry : entries) {
    TapeNode node{.entry = entry,
                  .first_output = entry->first_output,
                  .output_count = entry->output_count,
                  .first_input = static_cast<std::uint32_t>(sources_.size())};
    // An untracked input has no slot, and is not part of the graph.
    for (std::uint32_t slot : entry->inputs())
      if (std::uint32_t found = slot < node_of.size() ? node_of[slot] : 0)
        sources_.push_back({found - 1, slot - nodes_[found - 1].first_output});
    node.input_count = static_cast<std::uint32_t>(sources_.size()) - node.first_input;
    add(node);
  }
}

const TapeList& list_of_open_tape(const char* function, const void* tape, Location where) {
  Context& context = detail::context();
  const TapeList& list = *context.tapes;
  wait_for_all(context);
  list.scopes().apply_remote_ends(context);
  if (!list.scopes().is_open(tape) || list.outer())
    fail<TapeError>(function, where,
                    "the tape was opened by another thread, or this is within the function of a checkpoint");
  return list;
}

}  // namespace reel::detail
