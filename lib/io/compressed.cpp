#include "compressed.h"

#include <algorithm>
#include <exception>

#include <reel/io/safetensors.h>

#include "../core/memory_error.h"
#include "../core/modules/module.h"
#include "../core/op_error.h"
#include "../core/printable.h"

namespace reel::detail {

namespace {

constexpr const char* gunzip_name = "io::gunzip";
constexpr const char* gzip_name = "io::gzip";

}  // namespace

ByteSink TextSink::sink() { return {this, append}; }

bool TextSink::append(void* object, const void* bytes, std::size_t count) noexcept {
  auto& own = *static_cast<TextSink*>(object);
  std::size_t taken = std::min<std::uint64_t>(count, own.most_bytes_ - own.text.size());
  own.is_full_ = taken < count;
  try {
    own.text.append(static_cast<const char*>(bytes), taken);
    return !own.is_full_;
  } catch (const std::exception&) {
    own.lacks_memory_ = true;
    return false;
  }
}

void TextSink::check_memory(const char* function, Location where) const {
  if (lacks_memory_) fail_for_memory(function, where);
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view bytes, std::uint64_t most_bytes, const std::string& path, Location where,
                   bool cuts) {
  const auto& files = open_module<FilesTable, io::FileError>(gunzip_name, where);
  TextSink sink(most_bytes);
  ModuleMessage message;
  if (files.gunzip(bytes.data(), bytes.size(), sink.sink(), message) || (cuts && sink.is_full()))
    return std::move(sink.text);
  sink.check_memory(gunzip_name, where);
  if (sink.is_full())
    fail<io::FileError>(gunzip_name, where, "'{}' is more than {} bytes when it is decompressed, which is the limit",
                        printable(path), most_bytes);
  fail<io::FileError>(gunzip_name, where, "'{}' {}", printable(path), printable(message.text));
}

std::string gzip(std::string_view bytes, Location where) {
  const auto& files = open_module<FilesTable, io::FileError>(gzip_name, where);
  TextSink sink(UINT64_MAX);
  ModuleMessage message;
  if (files.gzip(bytes.data(), bytes.size(), sink.sink(), message)) return std::move(sink.text);
  fail_for_memory(gzip_name, where);
}

}  // namespace reel::detail
