#include "projector.h"

#include <sys/stat.h>

#include <cstddef>
#include <span>

#include <fmt/format.h>

#include <reel/io/text.h>
#include <reel/no_record.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../io/atomic_file.h"
#include "../ops/if_needed.h"
#include "event_file.h"
#include "picture.h"
#include "tag.h"

namespace reel::logging {

using detail::fail;

namespace {

constexpr const char* embedding_name = "logging::Writer::embedding";

// `own_names`: as of AtomicFile.
void write_whole(const std::string& path, int own_names, std::string_view bytes, Location where) {
  io::AtomicFile file(embedding_name, path, where, own_names);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

// The tag as the name of a folder; different tags have different names.
std::string folder_name(std::string_view tag) {
  std::string name;
  for (char c : tag) {
    bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
    if (is_plain)
      name += c;
    else
      name += fmt::format("={:02x}", static_cast<unsigned char>(c));
  }
  return name;
}

std::string table_of(const Tensor& matrix) {
  Tensor values = detail::contiguous_if_needed(detail::to_if_needed(detail::to_if_needed(matrix, cpu), f32));
  const float* next = values.data<float>();
  std::string text;
  for (std::int64_t row = 0; row < values.size(0); ++row)
    for (std::int64_t column = 0; column < values.size(1); ++column)
      fmt::format_to(std::back_inserter(text), "{}{}", *next++, column + 1 == values.size(1) ? '\n' : '\t');
  return text;
}

std::string list_of(const std::vector<std::string>& labels, Location where) {
  std::string text;
  for (const std::string& label : labels) {
    check_text(embedding_name, "the label", label, label, where);
    std::size_t start = text.size();
    // Tabs separate columns, and the projector passes over lines that are blank.
    for (char c : label) text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (text.find_first_not_of(' ', start) == text.npos) text += "(empty)";
    text += '\n';
  }
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

constexpr std::string_view entry_start = "embeddings {\n", entry_end = "}\n";

// The entries of a file except the entry of a tag.
std::string other_entries(const std::string& path, std::string_view tag_line, Location where) {
  struct stat found;
  if (lstat(path.c_str(), &found) != 0 && errno == ENOENT) return {};
  std::string text = io::Reader(embedding_name, path, where, 1).beginning();
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (std::size_t start = 0; (start = text.find(entry_start, start)) != text.npos;) {
    std::size_t end = text.find("\n}\n", start);
    bool is_of_tag = std::string_view(text).substr(start + entry_start.size()).starts_with(tag_line);
    if (end == text.npos || !is_of_tag)
      start += entry_start.size();
    else
      text.erase(start, end + 3 - start);
  }
  return text;
}

void check_embedding(const Tensor& matrix, const std::vector<std::string>& labels, const Tensor& sprite,
                     Location where) {
  const Tensor& given = detail::tensor_of(embedding_name, Arg(matrix, where));
  if (given.rank() != 2 || given.numel() == 0)
    fail<ShapeError>(embedding_name, where, "the vectors must be the rows of a matrix, not {}",
                     detail::describe(given));
  if (!labels.empty() && std::ssize(labels) != given.size(0))
    fail<Error>(embedding_name, where, "{} labels do not fit {} rows", labels.size(), given.size(0));
  if (sprite.defined() && (sprite.rank() != 4 || sprite.size(0) != given.size(0)))
    fail<ShapeError>(embedding_name, where, "the pictures {} are not one for each of {} rows", detail::describe(sprite),
                     given.size(0));
}

}  // namespace

void write_embedding(const std::string& directory, std::string_view tag, const Tensor& matrix,
                     const std::vector<std::string>& labels, const Tensor& sprite, Location where) {
  NoRecord pause;
  check_embedding(matrix, labels, sprite, where);
  std::string folder = "projector/" + folder_name(tag), here = directory + "/" + folder;
  constexpr int names_here = 3;  // the two folders and the file
  std::string tag_line = fmt::format("  tensor_name: {}\n", quoted(tag));
  std::string entry = fmt::format("{}{}  tensor_shape: {}\n  tensor_shape: {}\n  tensor_path: \"{}/tensors.tsv\"\n",
                                  entry_start, tag_line, matrix.size(0), matrix.size(1), folder);
  std::string label_lines = list_of(labels, where);
  if (sprite.defined()) {
    // The projector expects a square of pictures without gaps.
    write_whole(here + "/sprite.png", names_here,
                detail::encode_png(picture_of(embedding_name, sprite, 0, where), where), where);
    entry += fmt::format(
        "  sprite {{\n    image_path: \"{}/sprite.png\"\n    single_image_dim: {}\n    single_image_dim: {}\n  }}\n",
        folder, sprite.size(3), sprite.size(2));
  }
  if (!labels.empty()) {
    write_whole(here + "/metadata.tsv", names_here, label_lines, where);
    entry += fmt::format("  metadata_path: \"{}/metadata.tsv\"\n", folder);
  }
  write_whole(here + "/tensors.tsv", names_here, table_of(matrix), where);
  std::string config = directory + "/projector_config.pbtxt";
  write_whole(config, 1, other_entries(config, tag_line, where) + entry + std::string(entry_end), where);
}

}  // namespace reel::logging
