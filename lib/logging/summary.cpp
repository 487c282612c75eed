#include "summary.h"

#include <cstddef>
#include <limits>

#include "crc32c.h"
#include "histogram.h"

namespace reel::logging {

namespace {

// The class of data of a SummaryMetadata: tensors.
constexpr std::int64_t tensor_data = 2;

template <class T>
void append_little_endian(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

Message metadata_of(std::string_view plugin, std::string_view content) {
  Message data;
  data.text(field::plugin_name, plugin);
  if (!content.empty()) data.text(field::plugin_content, content);
  return Message().message(field::plugin, data).integer(field::data_class, tensor_data);
}

Message shape_of(std::int64_t size) {
  return Message().message(field::shape_dim, Message().integer(field::dim_size, size));
}

}  // namespace

Message number_value(std::string_view tag, double value) {
  constexpr double largest = std::numeric_limits<float>::max();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float rounded = value > largest ? infinity : value < -largest ? -infinity : static_cast<float>(value);
  return Message().text(field::tag, tag).f32(field::simple_value, rounded);
}

Message histogram_value(std::string_view tag, const Histogram& histogram) {
  Message content;
  content.f64(field::min, histogram.min)
      .f64(field::max, histogram.max)
      .f64(field::count, static_cast<double>(histogram.count))
      .f64(field::sum, histogram.sum)
      .f64(field::sum_of_squares, histogram.sum_of_squares)
      .f64s(field::limits, histogram.limits)
      .f64s(field::in_bucket, histogram.in_bucket);
  return Message().text(field::tag, tag).message(field::histogram, content);
}

Message text_value(std::string_view tag, std::string_view text) {
  Message tensor;
  tensor.integer(field::tensor_dtype, tensor_of_strings)
      .message(field::tensor_shape, shape_of(1))
      .text(field::tensor_string, text);
  return Message()
      .text(field::tag, tag)
      .message(field::tensor, tensor)
      .message(field::metadata, metadata_of("text", {}));
}

Message image_value(std::string_view tag, std::int64_t height, std::int64_t width, std::int64_t channels,
                    std::string_view png) {
  Message image;
  image.integer(field::image_height, height)
      .integer(field::image_width, width)
      .integer(field::image_channels, channels)
      .text(field::image_bytes, png);
  return Message().text(field::tag, tag).message(field::image, image);
}

Message plugin_value(std::string_view tag, std::string_view plugin, std::string_view content) {
  // A tensor without elements, as the plugins' own writers give.
  Message tensor;
  tensor.integer(field::tensor_dtype, tensor_of_f32).message(field::tensor_shape, shape_of(0));
  return Message()
      .text(field::tag, tag)
      .message(field::tensor, tensor)
      .message(field::metadata, metadata_of(plugin, content));
}

std::string event(double wall_time, std::int64_t step, std::uint32_t field, const Message& content) {
  return Message().f64(field::wall_time, wall_time).integer(field::step, step).message(field, content).bytes();
}

std::string version_event(double wall_time) {
  return Message()
      .f64(field::wall_time, wall_time)
      .text(field::version, file_version)
      .message(field::source, Message().text(1, "reel"))
      .bytes();
}

std::string session_start_event(double wall_time, std::int64_t step) {
  return event(wall_time, step, field::session_log, Message().integer(field::session_status, session_start));
}

void append_record(std::string& records, std::string_view bytes) {
  std::size_t start = records.size();
  append_little_endian(records, std::uint64_t{bytes.size()});
  append_little_endian(records, masked_crc32c(std::string_view(records).substr(start)));
  records += bytes;
  append_little_endian(records, masked_crc32c(bytes));
}

}  // namespace reel::logging
