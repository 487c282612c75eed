#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protobuf.h"

namespace reel::logging {

struct Histogram;

/// \file
/// The messages of TensorBoard's event files. Source: TensorBoard's event.proto, summary.proto and tensor.proto.

/// The version of event files, in the first event of each.
constexpr std::string_view file_version = "brain.Event:2";

/// The numbers of the fields of the messages.
namespace field {
/// Event.
constexpr std::uint32_t wall_time = 1, step = 2, version = 3, graph = 4, summary = 5, session_log = 7, source = 10;
/// SessionLog.
constexpr std::uint32_t session_status = 1;
/// Summary.
constexpr std::uint32_t value = 1;
/// Summary.Value.
constexpr std::uint32_t tag = 1, simple_value = 2, image = 4, histogram = 5, tensor = 8, metadata = 9;
/// Summary.Image.
constexpr std::uint32_t image_height = 1, image_width = 2, image_channels = 3, image_bytes = 4;
/// HistogramProto.
constexpr std::uint32_t min = 1, max = 2, count = 3, sum = 4, sum_of_squares = 5, limits = 6, in_bucket = 7;
/// SummaryMetadata and its PluginData.
constexpr std::uint32_t plugin = 1, data_class = 4, plugin_name = 1, plugin_content = 2;
/// TensorProto, TensorShapeProto and its Dim.
constexpr std::uint32_t tensor_dtype = 1, tensor_shape = 2, tensor_string = 8, shape_dim = 2, dim_size = 1;
}  // namespace field

/// The status of a SessionLog at the start of a session.
constexpr std::int64_t session_start = 1;
/// The dtypes of a TensorProto.
constexpr std::int64_t tensor_of_f32 = 1, tensor_of_strings = 7;

/// A value of a summary, a Summary.Value: a number.
Message number_value(std::string_view tag, double value);
/// A value of a summary: a histogram.
Message histogram_value(std::string_view tag, const Histogram& histogram);
/// A value of a summary: a text in Markdown.
Message text_value(std::string_view tag, std::string_view text);
/// A value of a summary: a picture, as the bytes of a PNG file.
Message image_value(std::string_view tag, std::int64_t height, std::int64_t width, std::int64_t channels,
                    std::string_view png);
/// A value of a summary that only a plugin of TensorBoard understands.
Message plugin_value(std::string_view tag, std::string_view plugin, std::string_view content);

/// An Event with one field beside wall time, in seconds since 1970, and step.
std::string event(double wall_time, std::int64_t step, std::uint32_t field, const Message& content);
/// An Event with values, each a Summary.Value.
template <class... Values>
std::string values_event(double wall_time, std::int64_t step, const Values&... values) {
  Message summary;
  (summary.message(field::value, values), ...);
  return event(wall_time, step, field::summary, summary);
}
/// The first Event of a file.
std::string version_event(double wall_time);
/// The Event after which readers ignore what earlier files have of this step and later ones.
std::string session_start_event(double wall_time, std::int64_t step);

/// Appends a record of an event file: its length, the check of that, its bytes, and the check of these.
/// Source: TensorFlow, "TFRecords format details".
void append_record(std::string& records, std::string_view bytes);

}  // namespace reel::logging
