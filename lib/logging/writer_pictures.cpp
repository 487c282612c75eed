#include <reel/logging/writer.h>

#include <string>

#include <reel/tape.h>

#include "graph.h"
#include "picture.h"
#include "projector.h"
#include "summary.h"
#include "tag.h"
#include "writer_files.h"

namespace reel::logging {

namespace {

// Space between the pictures of a grid, in pixels.
constexpr std::int64_t picture_gap = 2;

}  // namespace

void Writer::Files::add_picture(std::string_view tag, const detail::Pixels& pixels, std::int64_t step, Location where) {
  if (!has_events()) return;
  std::string png = detail::encode_png(pixels, where);
  log(step, where, [&](const Entry& entry) {
    Message value = image_value(tag, pixels.height, pixels.width, pixels.channels, png);
    add_event({}, entry.now, values_event(entry.now, step, value), where);
  });
}

void Writer::image(std::string_view tag, const Tensor& picture, std::int64_t step, Location where) {
  check_tag("logging::Writer::image", "the tag", tag, where);
  files_->add_picture(tag, picture_of("logging::Writer::image", picture, picture_gap, where), step, where);
}

void Writer::embedding(std::string_view tag, const Tensor& matrix, const std::vector<std::string>& labels,
                       const Tensor& sprite, Location where) {
  check_tag("logging::Writer::embedding", "the tag", tag, where);
  std::lock_guard lock(files_->mutex());
  write_embedding(files_->directory(), tag, matrix, labels, sprite, where);
}

void Writer::graph(const Tape& tape, const std::vector<NamedTensor>& names, Location where) {
  for (const NamedTensor& named : names) check_tag("logging::Writer::graph", "the name", named.name, where);
  std::string graph = graph_of(tape, names, where);
  if (!files_->has_events()) return;
  files_->log(0, where, [&](const Files::Entry& entry) {
    files_->add_event({}, entry.now, Message().f64(field::wall_time, entry.now).text(field::graph, graph).bytes(),
                      where);
  });
}

}  // namespace reel::logging
