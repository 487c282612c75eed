#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/recorded_run.h>
#include <reel/location.h>

namespace reel::debug {

/// One measured call.
struct Slice {
  std::int64_t start, duration;  // ns
  std::string_view op, file, module;
  int line;
  OpKind kind;
  std::size_t bytes;
  std::uint64_t flow;  // equal for a forward call and its gradient; 0: none
  bool waits = false;  // no call, but a wait; `op` is what for
};

/// Writes slices as a trace: Chrome's JSON if the name ends in ".json", else Perfetto's protobuf.
/// Source: perfetto.dev, trace_packet.proto, track_event.proto; "Trace Event Format".
void write_trace(std::vector<Slice> slices, std::string_view program, const std::string& file, Location where);

/// The slices as a flame graph in SVG.
std::string flame_graph_svg(const std::vector<Slice>& slices);

/// The slices of a recorded run.
std::vector<Slice> slices_of(const RecordedRun& run);

}  // namespace reel::debug
