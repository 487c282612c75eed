#include <cstdarg>
#include <cstdio>

#include "files_table.h"

namespace reel::detail {

void write_message(ModuleMessage& message, const char* format, ...) noexcept {
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(message.text, sizeof message.text, format, values);
  va_end(values);
}

}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static const FilesTable table = [] {
    FilesTable made{};
    fill_gzip(made);
    fill_zip(made);
    fill_images(made);
    return made;
  }();
  return table_if_compatible(table, version, bytes);
}
