#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "../../core/printable.h"
#include "../../io/atomic_file.h"
#include "../../logging/json_writer.h"
#include "../../logging/protobuf.h"
#include "slices.h"

namespace reel::debug {

namespace {

using logging::Message;

// The numbers of the fields of TracePacket, TrackEvent, TrackDescriptor, ThreadDescriptor, InternedData, EventName and
// SourceLocation.
constexpr std::uint32_t trace_packet = 1;
constexpr std::uint32_t packet_timestamp = 8, packet_sequence = 10, packet_event = 11, packet_interned = 12,
                        packet_flags = 13, packet_track = 60;
constexpr std::uint32_t event_category_iid = 3, event_type = 9, event_name_iid = 10, event_track = 11,
                        event_location_iid = 34, event_flow_ids = 47;
constexpr std::uint32_t track_uuid = 1, track_thread = 4;
constexpr std::uint32_t thread_pid = 1, thread_tid = 2, thread_name = 5;
constexpr std::uint32_t interned_categories = 1, interned_names = 2, interned_locations = 4;
constexpr std::uint32_t entry_iid = 1, entry_name = 2, location_file = 2, location_function = 3, location_line = 4;
constexpr std::int64_t slice_begin = 1, slice_end = 2;
constexpr std::int64_t sequence = 1, uuid = 1, clears_state = 1, needs_state = 2;

std::string name_of_slice(const Slice& slice) {
  const char* before = slice.waits ? "waiting for " : slice.kind == OpKind::gradient ? "gradient of " : "";
  return fmt::format("{}{}", before, slice.op);
}

std::string_view category_of(const Slice& slice) { return slice.waits ? "wait" : name_of(slice.kind); }

// A begin or an end of a slice.
struct Mark {
  std::int64_t at;
  const Slice* slice;
  bool begins;
};

// Begins and ends in the order of time, properly nested.
std::vector<Mark> marks_of(const std::vector<Slice>& slices) {
  std::vector<Mark> marks;
  std::vector<const Slice*> open;
  auto end_of = [](const Slice& slice) { return slice.start + slice.duration; };
  auto close_until = [&](std::int64_t at) {
    while (!open.empty() && end_of(*open.back()) <= at) {
      marks.push_back({end_of(*open.back()), open.back(), false});
      open.pop_back();
    }
  };
  for (const Slice& slice : slices) {
    close_until(slice.start);
    open.push_back(&slice);
    marks.push_back({slice.start, &slice, true});
  }
  close_until(INT64_MAX);
  return marks;
}

class PerfettoTrace {
 public:
  void write(io::AtomicFile& file, const std::vector<Slice>& slices, std::string_view program) {
    Message thread;
    thread.integer(thread_pid, 1).integer(thread_tid, 1).text(thread_name, program);
    Message packet;
    packet.message(packet_track, Message().integer(track_uuid, uuid).message(track_thread, thread));
    add(packet.integer(packet_sequence, sequence).integer(packet_flags, clears_state));
    for (const Mark& mark : marks_of(slices)) {
      mark.begins ? begin(mark) : end(mark);
      if (bytes_.size() > std::size_t{1} << 20) flush(file);
    }
    flush(file);
  }

 private:
  void add(const Message& packet) { bytes_ += Message().message(trace_packet, packet).bytes(); }
  void flush(io::AtomicFile& file) {
    file.write(std::as_bytes(std::span(bytes_)));
    bytes_.clear();
  }

  std::int64_t index_of(std::map<std::string, std::int64_t>& known, std::uint32_t field, const std::string& name) {
    auto [found, is_new] = known.try_emplace(name, static_cast<std::int64_t>(known.size()) + 1);
    if (is_new) interned_.message(field, Message().integer(entry_iid, found->second).text(entry_name, name));
    return found->second;
  }
  std::int64_t location_of(const Slice& slice) {
    auto [found, is_new] = locations_.try_emplace(std::tuple(slice.file, slice.line, slice.module),
                                                  static_cast<std::int64_t>(locations_.size()) + 1);
    if (is_new)
      interned_.message(interned_locations, Message()
                                                .integer(entry_iid, found->second)
                                                .text(location_file, slice.file)
                                                .text(location_function, slice.module)
                                                .integer(location_line, slice.line));
    return found->second;
  }

  void begin(const Mark& mark) {
    const Slice& slice = *mark.slice;
    interned_ = Message();
    Message event;
    event.integer(event_type, slice_begin)
        .integer(event_track, uuid)
        .integer(event_name_iid, index_of(names_, interned_names, name_of_slice(slice)))
        .integer(event_category_iid, index_of(categories_, interned_categories, std::string(category_of(slice))));
    if (!slice.file.empty()) event.integer(event_location_iid, location_of(slice));
    // A fixed64, which has the form of a double.
    if (slice.flow != 0) event.f64(event_flow_ids, std::bit_cast<double>(slice.flow));
    Message packet;
    packet.integer(packet_timestamp, mark.at).integer(packet_sequence, sequence).integer(packet_flags, needs_state);
    if (!interned_.bytes().empty()) packet.message(packet_interned, interned_);
    add(packet.message(packet_event, event));
  }
  void end(const Mark& mark) {
    Message packet;
    packet.integer(packet_timestamp, mark.at).integer(packet_sequence, sequence).integer(packet_flags, needs_state);
    add(packet.message(packet_event, Message().integer(event_type, slice_end).integer(event_track, uuid)));
  }

  std::string bytes_;
  Message interned_;
  std::map<std::string, std::int64_t> names_, categories_;
  std::map<std::tuple<std::string_view, int, std::string_view>, std::int64_t> locations_;
};

void write_json(io::AtomicFile& file, const std::vector<Slice>& slices) {
  std::string json;
  logging::JsonWriter writer(json);
  writer.begin().member("displayTimeUnit", "ns").json("traceEvents", "[");
  const char* separator = "\n";
  auto begin_event = [&](const char* phase, const Slice& slice) {
    json += std::exchange(separator, ",\n");
    writer.begin().member("ph", phase).member("pid", 1).member("tid", 1);
    writer.rounded("ts", static_cast<double>(slice.start) / 1e3, 3);
  };
  for (const Slice& slice : slices) {
    begin_event("X", slice);
    writer.rounded("dur", static_cast<double>(slice.duration) / 1e3, 3)
        .member("cat", category_of(slice))
        .member("name", detail::printable(slice.waits ? name_of_slice(slice) : std::string(slice.op)))
        .begin("args")
        .member("at", detail::printable(fmt::format("{}:{}", slice.file, slice.line)))
        .member("module", detail::printable(slice.module))
        .member("bytes", slice.bytes)
        .end()
        .end();
    if (slice.flow != 0) {
      bool is_end = slice.kind == OpKind::gradient;
      begin_event(is_end ? "f" : "s", slice);
      writer.member("id", slice.flow).member("cat", "gradient").member("name", "gradient");
      if (is_end) writer.member("bp", "e");
      writer.end();
    }
    if (json.size() < std::size_t{1} << 20) continue;
    file.write(std::as_bytes(std::span(json)));
    json.clear();
  }
  json += "\n]";
  writer.end();
  json += '\n';
  file.write(std::as_bytes(std::span(json)));
}

}  // namespace

void write_trace(std::vector<Slice> slices, std::string_view program, const std::string& file, Location where) {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  io::AtomicFile output("Profile::trace", file, where);
  if (file.ends_with(".json"))
    write_json(output, slices);
  else
    PerfettoTrace().write(output, slices, program);
  output.commit();
}

std::vector<Slice> slices_of(const RecordedRun& run) {
  std::vector<Slice> slices;
  for (const RecordedOp& op : run.ops()) {
    if (op.kind == OpKind::source || (op.kind == OpKind::forward && op.duration == 0)) continue;
    std::size_t bytes = 0;
    for (const RecordedTensor& output : op.outputs) bytes += output.bytes();
    std::uint64_t flow = op.kind == OpKind::gradient                            ? op.forward
                         : op.kind == OpKind::forward && run.gradient_of(op.id) ? op.id
                                                                                : 0;
    // A gradient of what is not in the recording has nothing to point to.
    if (op.kind == OpKind::gradient && flow != 0) {
      const RecordedOp* forward = run.find(flow);
      if (!forward || forward->kind != OpKind::forward || forward->duration == 0 || run.gradient_of(flow) != &op)
        flow = 0;
    }
    slices.push_back({op.start, op.duration, op.op, op.file, op.module, op.line, op.kind, bytes, flow});
  }
  return slices;
}

}  // namespace reel::debug
