#pragma once

#include <cstdint>
#include <string>

#include "debug/recording/format.h"

namespace reel_test {

/// An op of a recording that a program of bad will might write.
struct HostileOp {
  std::uint64_t id = 1, line = 1, step = 0, duration = 1;
  std::uint64_t units = 4, nans = 0;  ///< of its output, of shape (rows, units), whose first unit is zero
  std::uint64_t kind = 1, text_index = 1, inputs = 0, outputs = 1;         ///< kind 1: forward; inputs: as it claims
  std::uint64_t dtype = 0, device = 0, rank = 2, rows = 1, zero_unit = 1;  ///< of its output; zero_unit: from 1
  std::string text = "exp", program = "run";
};

/// The bytes of a recording that holds one segment with these records.
inline std::string recording_with(std::string_view records, std::string_view program = {}) {
  reel::debug::RecordBytes header;
  header.append(reel::debug::recording_magic);
  header.fixed(std::uint64_t{1} << 16);
  header.fixed(std::uint64_t{1});
  header.fixed(std::uint64_t{1});
  header.fixed(static_cast<std::uint32_t>(program.size()));
  header.append(program);
  std::string file(header.bytes());
  file.resize(reel::debug::recording_header_bytes);
  reel::debug::RecordBytes segment;
  segment.fixed(std::uint64_t{1});
  segment.fixed(std::uint64_t{records.size()});
  return file.append(segment.bytes()).append(records);
}

/// The bytes of a recording of one op, all of whose texts are the one of `op`.
inline std::string recording_of(const HostileOp& op) {
  reel::debug::RecordBytes records, body;
  auto add = [&](reel::debug::RecordType type, std::string_view bytes) {
    records.byte(static_cast<std::uint8_t>(type));
    records.varint(bytes.size());
    records.append(bytes);
  };
  add(reel::debug::RecordType::text, op.text);
  body.varint(op.id);
  body.varint(op.kind);
  for (int i = 0; i < 5; ++i) body.varint(op.text_index);
  for (std::uint64_t number : {op.line, op.step, std::uint64_t{0}, op.duration, std::uint64_t{0}, std::uint64_t{0}})
    body.varint(number);
  body.varint(op.inputs);
  body.varint(op.outputs);
  body.byte(static_cast<std::uint8_t>(op.dtype));
  body.byte(0);  // on the CPU
  for (std::uint64_t number : {op.device, std::uint64_t{1}, op.rank, op.rows, op.units}) body.varint(number);
  body.byte(reel::debug::has_statistics_flag | reel::debug::has_zero_units_flag);
  for (int i = 0; i < 4; ++i) body.fixed(0.0);
  for (std::uint64_t count : {op.nans, std::uint64_t{0}, std::uint64_t{1}}) body.varint(count);
  for (std::uint64_t number : {std::uint64_t{1}, op.zero_unit}) body.varint(number);  // one unit
  add(reel::debug::RecordType::op, body.bytes());
  return recording_with(records.bytes(), op.program);
}

}  // namespace reel_test
