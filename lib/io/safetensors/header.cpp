#include "header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <limits>
#include <span>
#include <stdexcept>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../core/utf8.h"
#include "../file.h"

namespace reel::io {

using detail::shown;

namespace {

// Dtypes of the format that tensors do not have.
constexpr std::array foreign_names{"U16",     "U32",     "U64",     "F8_E4M3", "F8_E5M2",
                                   "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4",      "C64"};

template <class... T>
[[noreturn]] void refuse(fmt::format_string<T...> words, T&&... values) {
  throw std::runtime_error(fmt::format(words, std::forward<T>(values)...));
}

DType known_dtype(std::string_view name, std::string_view tensor) {
  if (std::optional<DType> found = dtype_of(name)) return *found;
  if (std::find(foreign_names.begin(), foreign_names.end(), name) != foreign_names.end())
    refuse("has a tensor {} of the dtype {}, which reel has not; convert it to another before it is saved",
           shown(tensor), name);
  refuse("has a tensor {} of the dtype {}, which the format does not know", shown(tensor), shown(name));
}

// Receives the header's parts while it is parsed. Keeps only what the format allows, so that the depth and kind of a
// malicious header cost nothing.
class Listener : public nlohmann::json_sax<nlohmann::json> {
 public:
  Header header;

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::start: place_ = Place::names; return true;
      case Place::tensor_value: place_ = Place::fields; return begin_tensor();
      case Place::metadata_value: place_ = Place::words; return true;
      default: misplaced("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::names) {
      place_ = Place::done;
    } else if (place_ == Place::fields) {
      if (seen_ != all_fields) refuse("has a tensor {} without its {}", shown(name_), missing_field());
      place_ = Place::names;
    } else {
      place_ = Place::names;
    }
    return true;
  }

  bool key(std::string& key) override {
    if (place_ == Place::names) {
      if (!names_.insert(key).second) refuse("has two entries named {}", shown(key));
      name_ = key;
      place_ = key == metadata_name ? Place::metadata_value : Place::tensor_value;
    } else if (place_ == Place::words) {
      if (header.metadata.contains(key)) refuse("has two words of the name {} in its {}", shown(key), metadata_name);
      word_ = key;
    } else {
      begin_field(key);
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::words) {
      header.metadata.emplace(word_, value);
    } else if (place_ == Place::dtype) {
      tensor().dtype = known_dtype(value, name_);
      place_ = Place::fields;
    } else {
      misplaced("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape)
      place_ = Place::sizes;
    else if (place_ == Place::offsets)
      place_ = Place::offset_values;
    else
      misplaced("an array");
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offset_values && offset_count_ != 2)
      refuse("has a tensor {} with {} data_offsets in place of two", shown(name_), offset_count_);
    place_ = Place::fields;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::sizes)
      add_size(value);
    else if (place_ == Place::offset_values)
      add_offset(value);
    else
      misplaced("a number");
    return true;
  }

  bool number_integer(number_integer_t) override { misplaced("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    misplaced("a number that is no whole one, or too large");
  }
  bool null() override { misplaced("null"); }
  bool boolean(bool) override { misplaced("a bool"); }
  bool binary(binary_t&) override { misplaced("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse("has a header that is no valid JSON in UTF-8 at byte {}", position);
  }

 private:
  enum class Place {
    start,
    names,
    tensor_value,
    metadata_value,
    words,
    fields,
    dtype,
    shape,
    sizes,
    offsets,
    offset_values,
    done
  };
  static constexpr unsigned dtype_field = 1, shape_field = 2, offsets_field = 4, all_fields = 7;

  [[noreturn]] void misplaced(const char* what) const {
    switch (place_) {
      case Place::start: refuse("has a header that is {} in place of an object", what);
      case Place::words:
        refuse("has {} as the word {} in its {}, which holds strings", what, shown(word_), metadata_name);
      case Place::metadata_value: refuse("has {} as its {}, which is an object of strings", what, metadata_name);
      case Place::sizes: refuse("has a tensor {} with {} in its shape", shown(name_), what);
      case Place::offset_values: refuse("has a tensor {} with {} in its data_offsets", shown(name_), what);
      default: refuse("has {} where the description of the tensor {} has no place for it", what, shown(name_));
    }
  }

  Described& tensor() { return header.tensors.back(); }

  bool begin_tensor() {
    header.tensors.push_back({name_, f32, {}, 0, 0});
    seen_ = 0;
    return true;
  }

  void begin_field(const std::string& field) {
    unsigned own = 0;
    if (field == "dtype") {
      own = dtype_field;
      place_ = Place::dtype;
    } else if (field == "shape") {
      own = shape_field;
      place_ = Place::shape;
    } else if (field == "data_offsets") {
      own = offsets_field;
      place_ = Place::offsets;
      offset_count_ = 0;
    } else {
      refuse("has a tensor {} with a field {}, which the format does not know", shown(name_), shown(field));
    }
    if (seen_ & own) refuse("has a tensor {} with two fields {}", shown(name_), field);
    seen_ |= own;
  }

  const char* missing_field() const {
    if (!(seen_ & dtype_field)) return "dtype";
    return seen_ & shape_field ? "data_offsets" : "shape";
  }

  void add_size(std::uint64_t size) {
    if (tensor().shape.rank() == max_rank)
      refuse("has a tensor {} with more than {} axes, which is the most that tensors have", shown(name_), max_rank);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse("has a tensor {} whose shape is larger than any file", shown(name_));
    tensor().shape.push_back(static_cast<std::int64_t>(size));
  }

  void add_offset(std::uint64_t offset) {
    if (offset_count_ == 0) tensor().begin = offset;
    if (offset_count_ == 1) tensor().end = offset;
    ++offset_count_;
  }

  Place place_ = Place::start;
  std::string name_, word_;
  std::unordered_set<std::string> names_;
  unsigned seen_ = 0;
  std::size_t offset_count_ = 0;
};

// The size of a tensor's elements in bytes. The sizes are not negative.
std::uint64_t bytes_of(const Described& tensor) {
  std::uint64_t bytes = size_of(tensor.dtype);
  bool empty = false, overflow = false;
  for (std::int64_t size : tensor.shape) {
    empty |= size == 0;
    // Sizes that overflow are refused even if another size is 0: other readers could not multiply them.
    overflow |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes);
  }
  if (overflow)
    refuse("has a tensor {} whose shape {} is larger than any file", shown(tensor.name), to_string(tensor.shape));
  return empty ? 0 : bytes;
}

void check_places(const std::vector<Described>& tensors, std::uint64_t elements) {
  std::vector<const Described*> order;
  for (const Described& tensor : tensors) {
    std::uint64_t bytes = bytes_of(tensor);
    if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes)
      refuse("has a tensor {} of {} {}, which are {} bytes, at the bytes {} to {}", shown(tensor.name),
             to_string(tensor.shape), name_of(tensor.dtype), bytes, tensor.begin, tensor.end);
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const Described* a, const Described* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::uint64_t reached = 0;
  for (const Described* tensor : order) {
    if (tensor->begin != reached)
      refuse("has a tensor {} at byte {}, which {} the one before it, that ends at {}", shown(tensor->name),
             tensor->begin, tensor->begin < reached ? "overlaps" : "leaves a hole behind", reached);
    reached = tensor->end;
  }
  if (reached != elements)
    refuse("has {} bytes of elements where its header describes {}: it is {}", elements, reached,
           elements < reached ? "cut off" : "longer than it should be");
}

}  // namespace

std::string format_name(DType dtype) {
  std::string name = name_of(dtype);
  for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return name;
}

std::optional<DType> dtype_of(std::string_view name) {
  for (int i = 0; i < dtype_count; ++i)
    if (auto dtype = static_cast<DType>(i); format_name(dtype) == name) return dtype;
  return {};
}

Header parsed(std::string_view text, std::uint64_t elements) {
  if (text.empty() || text.front() != '{') refuse("has a header that does not begin with {{");
  // The parser would treat a NUL as the end.
  if (std::size_t zero = text.find('\0'); zero != text.npos)
    refuse("has a header that is no valid JSON in UTF-8 at byte {}", zero + 1);
  Listener listener;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &listener))
    refuse("has a header that is no valid JSON in UTF-8");
  check_places(listener.header.tensors, elements);
  return std::move(listener.header);
}

Header read_header(const char* function, const Reader& file, const std::string& path, Location where,
                   std::uint64_t& begin) {
  if (file.size() < count_bytes)
    detail::fail<FileError>(function, where, "'{}' has {} bytes, fewer than the {} that say how long the header is",
                            detail::printable(path), file.size(), count_bytes);
  std::array<std::byte, count_bytes> count;
  file.read(0, count);
  auto length = std::bit_cast<std::uint64_t>(count);
  if (length > most_header_bytes)
    detail::fail<FileError>(
        function, where,
        "'{}' says that its header has {} bytes, more than the {} that are allowed: it is no safetensors file",
        detail::printable(path), length, most_header_bytes);
  if (length > file.size() - count_bytes)
    detail::fail<FileError>(
        function, where,
        "'{}' says that its header has {} bytes, but only {} follow: it is cut off or no safetensors file",
        detail::printable(path), length, file.size() - count_bytes);
  std::string text(length, '\0');
  file.read(count_bytes, std::as_writable_bytes(std::span(text)));
  begin = count_bytes + length;
  try {
    return parsed(text, file.size() - begin);
  } catch (const std::runtime_error& flaw) {
    detail::fail<FileError>(function, where, "'{}' {}", detail::printable(path), flaw.what());
  }
}

std::string text_of(const Header& header) {
  auto checked = [](const std::string& words) -> const std::string& {
    if (detail::find_not_utf8(words) != words.npos) refuse("the name or word {} is not UTF-8", shown(words));
    return words;
  };
  auto object = nlohmann::ordered_json::object_t();
  if (!header.metadata.empty()) {
    auto words = nlohmann::ordered_json::object_t();
    for (const auto& [name, word] : header.metadata) words.emplace_back(checked(name), checked(word));
    object.emplace_back(metadata_name, std::move(words));
  }
  // `operator[]` would compare each name with all before it.
  for (const Described& tensor : header.tensors)
    object.emplace_back(checked(tensor.name), nlohmann::ordered_json{
                                                  {"dtype", format_name(tensor.dtype)},
                                                  {"shape", std::vector(tensor.shape.begin(), tensor.shape.end())},
                                                  {"data_offsets", {tensor.begin, tensor.end}},
                                              });
  std::string text = nlohmann::ordered_json(std::move(object)).dump();
  text.append((count_bytes - text.size() % count_bytes) % count_bytes, ' ');
  return text;
}

}  // namespace reel::io
