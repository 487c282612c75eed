#!/usr/bin/env python3
"""Judges traces by the classes that Perfetto's own package generates from its schema: every packet is known, slices nest,
names, categories and locations that events refer to are there, and a gradient's flow begins at one forward call.

Usage: judge_perfetto.py REEL WRITE_RECORDING OPS
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

MOST_BYTES_AN_OP = 100


def main():
    tool, write_recording, ops = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as name:
        recording, path = Path(name) / "run.reel", Path(name) / "run.perfetto-trace"
        subprocess.run([write_recording, recording, ops], check=True)
        subprocess.run([tool, "trace", recording, "-o", path], check=True, stdout=subprocess.DEVNULL)
        trace = perfetto_trace_pb2.Trace()
        trace.ParseFromString(path.read_bytes())
        size = path.stat().st_size
    names, categories, locations, flows, depth, slices, last = {}, {}, {}, {}, 0, 0, 0
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    assert len(tracks) == 1 and tracks[0].thread.thread_name, "one track, of a thread with a name"
    for packet in trace.packet:
        assert not len(unknown_fields.UnknownFieldSet(packet)), "every field is in the schema"
        assert packet.trusted_packet_sequence_id == 1
        for kept, entries in ((names, packet.interned_data.event_names), (categories, packet.interned_data.event_categories),
                              (locations, packet.interned_data.source_locations)):
            kept.update({entry.iid: entry for entry in entries})
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid == tracks[0].uuid and packet.timestamp >= last, "events are on the track, in order"
        last = packet.timestamp
        if event.type == event.TYPE_SLICE_END:
            depth -= 1
            assert depth >= 0, "no end without a beginning"
            continue
        assert event.type == event.TYPE_SLICE_BEGIN
        depth, slices = depth + 1, slices + 1
        assert event.name_iid in names and all(iid in categories for iid in event.category_iids)
        assert not event.source_location_iid or locations[event.source_location_iid].line_number > 0
        category = categories[event.category_iids[0]].name
        for flow in event.flow_ids:
            flows.setdefault(flow, []).append(category)
    assert depth == 0, "every slice ends"
    assert slices > 100 and flows
    unpaired = [kinds for kinds in flows.values() if sorted(kinds) != ["forward", "gradient"]]
    assert not unpaired, f"flows lead from a forward call to its gradient: {unpaired[:3]}"
    assert size <= MOST_BYTES_AN_OP * slices, f"{size / slices:.1f} bytes an op"
    print(f"{slices} slices, {len(flows)} flows, {size / slices:.1f} bytes an op, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
