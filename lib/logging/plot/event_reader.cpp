#include "event_reader.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../../core/op_error.h"
#include "../../io/file.h"
#include "../crc32c.h"
#include "../protobuf.h"
#include "../summary.h"

namespace reel::logging {

using detail::fail;

namespace {

constexpr const char* reader_name = "logging::plot";
// A record's length and the check of it are before its bytes, the check of these after them.
constexpr std::uint64_t length_bytes = 8, check_bytes = 4;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

// A file that is read in order, by large pieces.
class PieceReader {
 public:
  PieceReader(const std::string& path, Location where) : file_(reader_name, path, where), left_(file_.size()) {}

  /// The bytes that have not been read.
  std::uint64_t left() const { return left_; }
  std::uint64_t position() const { return file_.size() - left_; }
  /// The next bytes, at most as many as are left; they stay until the next call.
  std::string_view read(std::uint64_t size) {
    if (piece_.size() - used_ < size) {
      piece_.erase(0, used_);
      used_ = 0;
      std::uint64_t wanted = std::max(size, piece_bytes), held = piece_.size();
      std::uint64_t more = std::min(wanted - held, left_ - held);
      piece_.resize(static_cast<std::size_t>(held + more));
      file_.read(position() + held, std::as_writable_bytes(std::span(piece_).subspan(static_cast<std::size_t>(held))));
    }
    std::string_view bytes = std::string_view(piece_).substr(used_, static_cast<std::size_t>(size));
    used_ += bytes.size();
    left_ -= size;
    return bytes;
  }

 private:
  static constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 18;

  io::Reader file_;
  std::uint64_t left_;
  std::string piece_;
  std::size_t used_ = 0;
};

std::vector<double> packed_doubles(std::string_view bytes) {
  if (bytes.size() % 8 != 0) throw WireError("have a list of numbers that is cut off");
  std::vector<double> values;
  for (; !bytes.empty(); bytes.remove_prefix(8))
    values.push_back(std::bit_cast<double>(little_endian(bytes.substr(0, 8))));
  return values;
}

Histogram parsed_histogram(std::string_view bytes) {
  Histogram histogram;
  histogram.min = histogram.max = 0;
  for (Fields fields(bytes); fields.next();) {
    if (fields.field() == field::min) histogram.min = fields.f64();
    if (fields.field() == field::max) histogram.max = fields.f64();
    if (fields.field() == field::count) {
      double count = fields.f64();
      if (!(count >= 0 && count < 9e18)) throw WireError("have a histogram of a count that cannot be");
      histogram.count = static_cast<std::int64_t>(count);
    }
    if (fields.field() == field::sum) histogram.sum = fields.f64();
    if (fields.field() == field::sum_of_squares) histogram.sum_of_squares = fields.f64();
    if (fields.field() == field::limits) histogram.limits = packed_doubles(fields.text());
    if (fields.field() == field::in_bucket) histogram.in_bucket = packed_doubles(fields.text());
  }
  if (histogram.limits.size() != histogram.in_bucket.size())
    throw WireError("have a histogram whose limits and counts differ in number");
  return histogram;
}

std::string_view bytes_field(std::string_view message, std::uint32_t wanted) {
  std::string_view found;
  for (Fields fields(message); fields.next();)
    if (fields.field() == wanted) found = fields.text();
  return found;
}

LoggedValue parsed_value(std::string_view bytes) {
  LoggedValue value;
  std::string_view tensor, plugin;
  for (Fields fields(bytes); fields.next();) {
    if (fields.field() == field::tag) value.tag = fields.text();
    if (fields.field() == field::simple_value) {
      value.kind = LoggedValue::Kind::number;
      value.number = static_cast<double>(fields.f32());
    }
    if (fields.field() == field::histogram) {
      value.kind = LoggedValue::Kind::histogram;
      value.histogram = parsed_histogram(fields.text());
    }
    if (fields.field() == field::image) {
      value.kind = LoggedValue::Kind::picture;
      value.bytes = bytes_field(fields.text(), field::image_bytes);
    }
    if (fields.field() == field::tensor) tensor = fields.text();
    if (fields.field() == field::metadata) plugin = bytes_field(fields.text(), field::plugin);
  }
  std::string_view name = bytes_field(plugin, field::plugin_name);
  if (name == "text") {
    value.kind = LoggedValue::Kind::text;
    value.bytes = bytes_field(tensor, field::tensor_string);
  } else if (name == "hparams") {
    value.kind = LoggedValue::Kind::hyper_parameters;
    value.bytes = bytes_field(plugin, field::plugin_content);
  }
  return value;
}

bool is_session_start(std::string_view log) {
  bool starts = false;
  for (Fields fields(log); fields.next();)
    if (fields.field() == field::session_status) starts = fields.integer() == session_start;
  return starts;
}

}  // namespace

LoggedEvent parsed_event(std::string_view bytes) {
  LoggedEvent event;
  for (Fields fields(bytes); fields.next();) {
    if (fields.field() == field::wall_time) event.wall_time = fields.f64();
    if (fields.field() == field::step) event.step = fields.integer();
    if (fields.field() == field::session_log) event.starts_session = is_session_start(fields.text());
    if (fields.field() == field::summary)
      for (Fields values(fields.text()); values.next();)
        if (values.field() == field::value) event.values.push_back(parsed_value(values.text()));
  }
  return event;
}

void read_events(const std::string& path, const std::function<void(const LoggedEvent&)>& f, Location where) {
  PieceReader file(path, where);
  while (file.left() >= length_bytes + check_bytes) {
    std::uint64_t start = file.position();
    auto refuse = [&](const std::string& words) {
      fail<io::FileError>(reader_name, where, "the record at byte {} of '{}' {}", start, io::printable(path), words);
    };
    std::string_view head = file.read(length_bytes + check_bytes);
    std::uint64_t size = little_endian(head.substr(0, length_bytes));
    if (little_endian(head.substr(length_bytes)) != masked_crc32c(head.substr(0, length_bytes)))
      refuse("is damaged: the check of its length does not fit; the file is no event file, or the rest of it is lost");
    if (file.left() < check_bytes || size > file.left() - check_bytes) return;
    std::string_view bytes = file.read(size + check_bytes);
    std::string_view content = bytes.substr(0, bytes.size() - check_bytes);
    if (little_endian(bytes.substr(content.size())) != masked_crc32c(content))
      refuse("is damaged: the check of its bytes does not fit");
    try {
      // f reads messages of plugins, which are no part of what `parsed_event` checks.
      f(parsed_event(content));
    } catch (const WireError& error) {
      refuse(fmt::format("is no event: its bytes {}", error.what()));
    }
  }
}

}  // namespace reel::logging
