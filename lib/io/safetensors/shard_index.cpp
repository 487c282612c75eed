#include "shard_index.h"

#include <sys/stat.h>

#include <array>
#include <bit>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <reel/io/safetensors.h>
#include <nlohmann/json.hpp>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../file.h"
#include "header.h"

namespace reel::io {

using detail::fail;
using detail::shown;

namespace {

constexpr const char* map_name = "weight_map";

template <class... T>
[[noreturn]] void refuse_index(fmt::format_string<T...> words, T&&... values) {
  throw std::runtime_error(fmt::format(words, std::forward<T>(values)...));
}

void check_shard(const std::string& shard) {
  std::filesystem::path path = shard;
  bool leaves = path.is_absolute() || shard.find('\0') != shard.npos;
  for (const std::filesystem::path& part : path) leaves |= part == "..";
  if (leaves || shard.empty()) refuse_index("names a file {}, which is not in its folder", shown(shard));
}

// Receives the parts of an index while it is parsed; what is not needed is not kept, however deep it is.
class IndexListener : public nlohmann::json_sax<nlohmann::json> {
 public:
  ShardIndex index;
  bool has_map = false;

  bool start_object(std::size_t) override {
    if (depth_ == 1 && is_map_) {
      if (has_map) refuse_index("has two entries named {}", map_name);
      has_map = true;
    } else {
      value("an object");
    }
    ++depth_;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override {
    value("an array");
    ++depth_;
    return true;
  }
  bool end_array() override { return leave(); }

  bool key(std::string& key) override {
    if (depth_ == 1) is_map_ = key == map_name;
    if (in_map()) {
      name_ = key;
      if (index.contains(name_)) refuse_index("names the tensor {} twice", shown(name_));
    }
    return true;
  }

  bool string(std::string& text) override {
    if (!in_map()) return value("a string");
    check_shard(text);
    index.emplace(name_, text);
    return true;
  }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a bool"); }
  bool binary(binary_t&) override { return value("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse_index("is no valid JSON in UTF-8 at byte {}", position);
  }

 private:
  bool in_map() const { return depth_ == 2 && is_map_; }
  bool leave() {
    --depth_;
    return true;
  }
  // A value other than the map or a file's name.
  bool value(const char* what) const {
    if (in_map()) refuse_index("has {} in place of the file of the tensor {}", what, shown(name_));
    if (depth_ == 1 && is_map_) refuse_index("has {} as its {}, which is an object of strings", what, map_name);
    return true;
  }

  std::size_t depth_ = 0;
  bool is_map_ = false;
  std::string name_;
};

// A file's header is kept, and its elements are read, once for each name that it has in the index.
void check_distinct(const ShardIndex& index, const std::string& path) {
  std::map<std::pair<dev_t, ino_t>, std::string> names;
  for (const auto& [name, shard] : index) {
    struct stat found;
    if (stat(shard_path(path, shard).c_str(), &found) != 0) continue;
    const std::string& first = names.try_emplace({found.st_dev, found.st_ino}, shard).first->second;
    if (first != shard) refuse_index("names one file both {} and {}", shown(first), shown(shard));
  }
}

}  // namespace

bool is_shard_index(const Reader& file) {
  std::array<std::byte, count_bytes> begin{};
  if (file.size() < begin.size()) return false;
  file.read(0, begin);
  std::uint64_t length = std::bit_cast<std::uint64_t>(begin);
  return begin[0] == std::byte{'{'} && length > most_header_bytes;
}

ShardIndex read_shard_index(const char* function, const Reader& file, const std::string& path, Location where) {
  if (file.size() > most_header_bytes)
    fail<FileError>(function, where, "'{}' has {} bytes, more than the {} that an index may have",
                    detail::printable(path), file.size(), most_header_bytes);
  std::string text = file.beginning();
  try {
    // The parser would treat a NUL as the end.
    if (std::size_t zero = text.find('\0'); zero != text.npos)
      refuse_index("is no valid JSON in UTF-8 at byte {}", zero + 1);
    IndexListener listener;
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &listener)) refuse_index("is no valid JSON in UTF-8");
    if (!listener.has_map) refuse_index("has no {}, and is no index of a checkpoint in several files", map_name);
    check_distinct(listener.index, path);
    return std::move(listener.index);
  } catch (const std::runtime_error& flaw) {
    fail<FileError>(function, where, "'{}' {}", detail::printable(path), flaw.what());
  }
}

std::string shard_path(const std::string& index_path, const std::string& shard) {
  return (std::filesystem::path(index_path).parent_path() / shard).string();
}

}  // namespace reel::io
