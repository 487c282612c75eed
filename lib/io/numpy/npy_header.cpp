#include "npy_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../../core/dtype_dispatch.h"
#include "../../core/printable.h"

namespace reel::io {

using detail::number_kind, detail::NumberKind, detail::shown;

namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t npy_alignment = 64;

// NumPy's name of a dtype, without the order of bytes.
std::string npy_name(DType dtype) {
  auto letter = [](NumberKind kind) {
    switch (kind) {
      case NumberKind::signed_integer: return 'i';
      case NumberKind::unsigned_integer: return 'u';
      case NumberKind::boolean: return 'b';
      case NumberKind::bfloat: return 'V';
      default: return 'f';
    }
  };
  return fmt::format("{}{}", letter(number_kind(dtype)), size_of(dtype));
}

std::optional<NpyElement> find_element(std::string_view name) {
  for (int i = 0; i < dtype_count; ++i)
    if (auto dtype = static_cast<DType>(i); npy_name(dtype) == name)
      return NpyElement{dtype, size_of(dtype), std::string(name), false};
  if (name == "u2") return NpyElement{i32, 2, std::string(name), false};
  if (name == "u4") return NpyElement{i64, 4, std::string(name), false};
  return {};
}

template <class... T>
[[noreturn]] void refuse_npy(fmt::format_string<T...> words, T&&... values) {
  throw std::runtime_error(fmt::format(words, std::forward<T>(values)...));
}

const char* kind_of(char letter) {
  switch (letter) {
    case 'O': return "Python objects, which would have to be unpickled";
    case 'U':
    case 'S':
    case 'a': return "text";
    case 'c': return "complex numbers";
    case 'M':
    case 'm': return "times";
    case 'V': return "records or raw bytes";
    default: return nullptr;
  }
}

NpyElement element_of(std::string_view descr, bool widens) {
  std::string_view name = descr;
  char order = '=';
  if (!name.empty() && std::string_view("<>|=").find(name.front()) != name.npos) {
    order = name.front();
    name.remove_prefix(1);
  }
  if (name == "?") name = "b1";
  std::optional<NpyElement> found = find_element(name);
  if (!found) {
    if (const char* kind = name.empty() ? nullptr : kind_of(name.front()))
      refuse_npy("has elements of the type {}: {}, which tensors do not hold", shown(descr), kind);
    refuse_npy("has elements of the type {}, which reel does not have: convert them in Python with astype",
               shown(descr));
  }
  NpyElement element = *found;
  element.is_big_endian = order == '>' && element.bytes > 1;
  if (element.is_widened() && !widens)
    refuse_npy("has elements of the type {}, which reel does not have: .widen = true converts them to {}", shown(descr),
               name_of(element.dtype));
  return element;
}

// Reads the literal of a dictionary that NumPy writes; nothing is evaluated.
class NpyParser {
 public:
  NpyParser(std::string_view text, bool widens) : text_(text), widens_(widens) {}

  NpyHeader parse() {
    expect('{');
    while (!next_is('}')) {
      read_entry();
      if (!next_is('}')) expect(',');
    }
    expect('}');
    skip_space();
    if (place_ != text_.size()) misplaced("the end");
    if (!element_ || !is_fortran_ || !shape_) refuse_npy("has a header without {}", missing());
    NpyHeader header{*element_, *shape_, *is_fortran_, 0};
    header.elements_bytes = bytes_of(header);
    return header;
  }

 private:
  const char* missing() const { return !element_ ? "descr" : !shape_ ? "shape" : "fortran_order"; }

  [[noreturn]] void misplaced(const char* expected) const {
    refuse_npy("has a header without {} at byte {}, as {} is no dictionary of NumPy's", expected, place_, shown(text_));
  }

  void skip_space() {
    while (place_ < text_.size() && std::string_view(" \t\r\n").find(text_[place_]) != text_.npos) ++place_;
  }

  bool next_is(char character) {
    skip_space();
    return place_ < text_.size() && text_[place_] == character;
  }

  void expect(char character) {
    if (!next_is(character)) misplaced(fmt::format("'{}'", character).c_str());
    ++place_;
  }

  std::string_view read_string() {
    skip_space();
    char quote = place_ < text_.size() ? text_[place_] : '\0';
    if (quote != '\'' && quote != '"') misplaced("a string");
    std::size_t begin = ++place_, end = text_.find_first_of("'\"\\\n", begin);
    if (end == text_.npos || text_[end] != quote) misplaced("the end of a string");
    place_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  void read_entry() {
    std::string_view key = read_string();
    expect(':');
    if (key == "descr" && !element_)
      element_ = read_element();
    else if (key == "fortran_order" && !is_fortran_)
      is_fortran_ = read_bool();
    else if (key == "shape" && !shape_)
      shape_ = read_shape();
    else
      refuse_npy("has a header with an entry {}, which is unknown or there twice", shown(key));
  }

  NpyElement read_element() {
    if (next_is('[') || next_is('('))
      refuse_npy("has records of several fields as elements, which tensors do not hold");
    return element_of(read_string(), widens_);
  }

  bool read_bool() {
    skip_space();
    for (auto [word, value] : {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}})
      if (text_.substr(place_).starts_with(word)) {
        place_ += word.size();
        return value;
      }
    misplaced("True or False");
  }

  Shape read_shape() {
    Shape shape;
    expect('(');
    for (bool has_comma = true; !next_is(')');) {
      if (!has_comma) misplaced("a comma");
      if (shape.rank() == max_rank) refuse_npy("has more than {} axes, which is the most that tensors have", max_rank);
      shape.push_back(read_size());
      has_comma = next_is(',');
      if (has_comma) ++place_;
      // Without a comma the parentheses would enclose a number.
      if (!has_comma && shape.rank() == 1) misplaced("a comma");
    }
    expect(')');
    return shape;
  }

  std::int64_t read_size() {
    skip_space();
    std::size_t begin = place_;
    std::int64_t size = 0;
    for (; place_ < text_.size() && text_[place_] >= '0' && text_[place_] <= '9'; ++place_)
      if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, text_[place_] - '0', &size))
        refuse_npy("has a shape that is larger than any file");
    if (place_ == begin) misplaced("a size");
    // Python 2 wrote long integers with an L.
    if (place_ < text_.size() && text_[place_] == 'L') ++place_;
    return size;
  }

  static std::uint64_t bytes_of(const NpyHeader& header) {
    std::uint64_t bytes = header.element.bytes;
    bool empty = false, overflow = false;
    for (std::int64_t size : header.shape) {
      empty |= size == 0;
      overflow |= __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1)), &bytes);
    }
    if (overflow || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse_npy("has a shape {} that is larger than any file", to_string(header.shape));
    return empty ? 0 : bytes;
  }

  std::string_view text_;
  bool widens_;
  std::size_t place_ = 0;
  std::optional<NpyElement> element_;
  std::optional<bool> is_fortran_;
  std::optional<Shape> shape_;
};

}  // namespace

std::size_t npy_count_bytes(std::string_view signature) {
  if (!signature.starts_with(npy_magic)) refuse_npy("does not begin as NumPy's files do");
  int major = static_cast<unsigned char>(signature[6]), minor = static_cast<unsigned char>(signature[7]);
  if (major < 1 || major > 3 || minor != 0)
    refuse_npy("is of version {}.{} of the format; 1.0, 2.0 and 3.0 are read", major, minor);
  return major == 1 ? 2 : 4;
}

NpyHeader parsed_npy(std::string_view text, bool widens) { return NpyParser(text, widens).parse(); }

std::string npy_prelude(DType dtype, const Shape& shape) {
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", size_of(dtype) == 1 ? '|' : '<',
                  npy_name(dtype), fmt::join(shape.begin(), shape.end(), ", "), shape.rank() == 1 ? "," : "");
  std::size_t before = npy_signature_bytes + 2;
  std::size_t size = (before + text.size() + 1 + npy_alignment - 1) / npy_alignment * npy_alignment - before;
  text.append(size - 1 - text.size(), ' ');
  text += '\n';
  std::string prelude(npy_magic);
  for (std::size_t byte : {std::size_t{1}, std::size_t{0}, size & 0xff, size >> 8}) prelude += static_cast<char>(byte);
  return prelude + text;
}

}  // namespace reel::io
