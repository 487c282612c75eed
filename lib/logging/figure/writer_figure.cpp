#include <reel/logging/writer.h>

#include "../tag.h"
#include "../writer_files.h"
#include "figure.h"

namespace reel::logging {

void Writer::figure(std::string_view tag, const LinePlot& plot, std::int64_t step, Location where) {
  check_tag("logging::Writer::figure", "the tag", tag, where);
  files_->add_picture(tag, draw(plot, where), step, where);
}

void Writer::figure(std::string_view tag, const HeatMap& map, std::int64_t step, Location where) {
  check_tag("logging::Writer::figure", "the tag", tag, where);
  files_->add_picture(tag, draw(map, where), step, where);
}

}  // namespace reel::logging
