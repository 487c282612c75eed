#pragma once

#include <span>
#include <string>

#include <reel/named_tensor.h>
#include <reel/tape.h>

namespace reel::logging {

/// The graph of what a tape has recorded, a GraphDef: a node for each entry, named by its op, and one for each parameter
/// and watched tensor, named as in `names`. Source: TensorFlow's graph.proto, node_def.proto and attr_value.proto.
/// Throws: TapeError unless the tape is this thread's and has entries.
std::string graph_of(const Tape& tape, std::span<const NamedTensor> names, Location where);

}  // namespace reel::logging
