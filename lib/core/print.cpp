#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "dtype_dispatch.h"
#include "op_error.h"
#include "print.h"

namespace reel {

using namespace detail;

namespace {

constexpr std::int64_t most_shown = 1000, edge = 3, line_width = 75;
constexpr int precision = 8;

// |x| = 0.d₁d₂… × 10^point with the fewest digits that identify x among the numbers of its type.
struct Decimal {
  std::string digits;
  int point;
};

Decimal decimal_of(const char* scientific, const char* end) {
  const char* e = std::find(scientific, end, 'e');
  Decimal decimal{{}, std::stoi(std::string(e + 1, end)) + 1};
  std::copy_if(scientific, e, std::back_inserter(decimal.digits), [](char c) { return c >= '0' && c <= '9'; });
  return decimal;
}

template <class T>
Decimal shortest_of(T x) {
  char text[40];
  return decimal_of(text, std::to_chars(text, std::end(text), std::abs(x), std::chars_format::scientific).ptr);
}

// The standard library does not format halves: five digits are enough for any. Below a power of two the spacing is
// smaller, so that of two equally distant decimals only the upper one may identify x.
template <class Half>
Decimal shortest_of_half(float x) {
  double size = std::abs(static_cast<double>(x));
  std::string text;
  for (int digits = 0; digits < 5; ++digits)
    for (double number : {size, std::nextafter(size, HUGE_VAL)}) {
      text = fmt::format("{:.{}e}", number, digits);
      if (static_cast<double>(static_cast<float>(Half(std::strtof(text.c_str(), nullptr)))) == size)
        return decimal_of(text.data(), text.data() + text.size());
    }
  return decimal_of(text.data(), text.data() + text.size());
}

Decimal shortest(double x, DType dtype) {
  switch (dtype) {
    case DType::f64: return shortest_of(x);
    case DType::bf16: return shortest_of_half<BFloat16>(static_cast<float>(x));
    case DType::f16: return shortest_of_half<Float16>(static_cast<float>(x));
    default: return shortest_of(static_cast<float>(x));
  }
}

// A number in the parts that are aligned: "-12" . "5" e "+03".
struct Parts {
  std::string integer, fraction, exponent;
};

void trim_zeros(std::string& fraction) {
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
}

Parts parts_of(const std::string& text) {
  std::size_t e = std::min(text.find('e'), text.size()), dot = std::min(text.find('.'), e);
  Parts parts{text.substr(0, dot), dot < e ? text.substr(dot + 1, e - dot - 1) : "",
              e < text.size() ? text.substr(e + 1) : ""};
  trim_zeros(parts.fraction);
  return parts;
}

Parts positional(double x, DType dtype, int most_digits) {
  Decimal d = shortest(x, dtype);
  int count = static_cast<int>(d.digits.size());
  if (count - d.point > most_digits) return parts_of(fmt::format("{:.{}f}", x, most_digits));
  if (d.point <= 0) {
    d.digits.insert(0, static_cast<std::size_t>(1 - d.point), '0');
    d.point = 1;
  } else if (count < d.point) {
    d.digits.append(static_cast<std::size_t>(d.point - count), '0');
  }
  auto point = static_cast<std::size_t>(d.point);
  return parts_of(
      fmt::format("{}{}.{}", std::signbit(x) ? "-" : "", d.digits.substr(0, point), d.digits.substr(point)));
}

Parts scientific(double x, DType dtype, int most_digits) {
  Decimal d = shortest(x, dtype);
  if (static_cast<int>(d.digits.size()) - 1 > most_digits) return parts_of(fmt::format("{:.{}e}", x, most_digits));
  int exponent = d.point - 1;
  return parts_of(fmt::format("{}{}.{}e{}{:02}", std::signbit(x) ? "-" : "", d.digits[0], d.digits.substr(1),
                              exponent < 0 ? '-' : '+', std::abs(exponent)));
}

std::string not_finite(double x) { return std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf"; }

double rounded(double x, DType dtype) {
  auto single = static_cast<float>(x);
  switch (dtype) {
    case DType::f64: return x;
    case DType::bf16: return static_cast<double>(static_cast<float>(BFloat16(single)));
    case DType::f16: return static_cast<double>(static_cast<float>(Float16(single)));
    default: return static_cast<double>(single);
  }
}

// The limit from which a number is printed with an exponent; `f64_limit` depends on whether it is a lone number.
double positional_limit(DType dtype, double f64_limit) {
  switch (dtype) {
    case DType::f64: return f64_limit;
    case DType::bf16: return 1e2;
    case DType::f16: return 1e3;
    default: return 1e6;
  }
}

// NumPy's rule, which compares in the array's own type.
bool wants_exponents(const std::vector<double>& numbers, DType dtype) {
  double largest = 0, smallest = HUGE_VAL;
  for (double x : numbers) {
    if (!std::isfinite(x) || x == 0) continue;
    largest = std::max(largest, std::abs(x));
    smallest = std::min(smallest, std::abs(x));
  }
  if (largest == 0) return false;
  return largest >= positional_limit(dtype, 1e8) || smallest < rounded(1e-4, dtype) ||
         rounded(largest / smallest, dtype) > rounded(1e3, dtype);
}

std::string padded(const std::string& text, std::size_t width) { return fmt::format("{:>{}}", text, width); }

std::vector<std::string> aligned_floats(const std::vector<double>& numbers, DType dtype) {
  bool exponents = wants_exponents(numbers, dtype);
  std::vector<Parts> parts;
  std::size_t left = 0, fraction = 0, exponent = 0;
  for (double x : numbers) {
    parts.emplace_back();
    if (!std::isfinite(x)) continue;
    parts.back() = exponents ? scientific(x, dtype, precision) : positional(x, dtype, precision);
    left = std::max(left, parts.back().integer.size());
    fraction = std::max(fraction, parts.back().fraction.size());
    exponent = std::max(exponent, parts.back().exponent.size());
  }
  std::size_t right = fraction + (exponents ? exponent + 1 : 0);
  for (double x : numbers)
    if (std::string text = std::isfinite(x) ? "" : not_finite(x); text.size() > left + right + 1)
      left = text.size() - right - 1;

  std::vector<std::string> words;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Parts& p = parts[i];
    if (!std::isfinite(numbers[i])) {
      words.push_back(padded(not_finite(numbers[i]), left + right + 1));
    } else if (exponents) {
      // Shows as many digits as the number that needs most.
      if (p.fraction.size() < fraction) p = parts_of(fmt::format("{:.{}e}", numbers[i], fraction));
      words.push_back(fmt::format("{}.{:0<{}}e{}{:0>{}}", padded(p.integer, left), p.fraction, fraction, p.exponent[0],
                                  p.exponent.substr(1), exponent - 1));
    } else {
      words.push_back(fmt::format("{}.{:<{}}", padded(p.integer, left), p.fraction, fraction));
    }
  }
  return words;
}

// A tensor of rank 0 prints as a NumPy scalar: all its digits, and at least one after the point.
std::string lone_float(double x, DType dtype) {
  if (!std::isfinite(x)) return not_finite(x);
  double size = std::abs(x);
  constexpr int all = 400;
  if (size == 0 || (size >= 1e-4 && size < positional_limit(dtype, 1e16))) {
    Parts parts = positional(x, dtype, all);
    return parts.integer + "." + (parts.fraction.empty() ? "0" : parts.fraction);
  }
  Parts parts = scientific(x, dtype, all);
  return parts.integer + (parts.fraction.empty() ? "" : "." + parts.fraction) + "e" + parts.exponent;
}

// Visits the elements that are shown, and lays out their words.
class PrintLayout {
 public:
  explicit PrintLayout(const Tensor& tensor)
      : shape_(tensor.shape()), strides_(tensor.strides()), shortened_(tensor.numel() > most_shown) {}

  std::vector<std::int64_t> shown_offsets() const {
    std::vector<std::int64_t> found;
    collect(0, 0, found);
    return found;
  }

  // `words`: one for each shown element.
  std::string text(const std::vector<std::string>& words) {
    word_ = words.begin();
    return nested(0);
  }

 private:
  bool leaves_out(int axis) const { return shortened_ && shape_[axis] > 2 * edge; }

  void collect(int axis, std::int64_t offset, std::vector<std::int64_t>& found) const {
    if (axis == shape_.rank()) return found.push_back(offset);
    for (std::int64_t i = 0; i < shape_[axis]; ++i) {
      if (i == edge && leaves_out(axis)) i = shape_[axis] - edge;
      collect(axis + 1, offset + i * strides_[axis], found);
    }
  }

  std::string nested(int axis) { return axis == shape_.rank() - 1 ? row(axis) : rows(axis); }

  std::string rows(int axis) {
    std::string gap(static_cast<std::size_t>(shape_.rank() - axis - 1), '\n');
    gap.append(static_cast<std::size_t>(axis + 1), ' ');
    std::string text = "[";
    for (std::int64_t i = 0; i < shape_[axis]; ++i) {
      if (i > 0) text += gap;
      if (i == edge && leaves_out(axis)) {
        text += "..." + gap;
        i = shape_[axis] - edge;
      }
      text += nested(axis + 1);
    }
    return text + "]";
  }

  std::string row(int axis) {
    std::string indent(static_cast<std::size_t>(axis + 1), ' ');
    // Each bracket that closes after the row takes a column.
    auto width = static_cast<std::size_t>(line_width - axis - 1);
    std::string text, line = indent;
    auto put = [&](const std::string& word) {
      if (line.size() + word.size() > width && line.size() > indent.size()) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word;
    };
    for (std::int64_t i = 0; i < shape_[axis]; ++i) {
      if (i > 0) line += ' ';
      if (i == edge && leaves_out(axis)) {
        put("...");
        line += ' ';
        i = shape_[axis] - edge;
      }
      put(*word_++);
    }
    return fmt::format("[{}]", (text + line).substr(indent.size()));
  }

  Shape shape_, strides_;
  bool shortened_;
  std::vector<std::string>::const_iterator word_;
};

template <class T>
std::vector<std::string> float_words(const Tensor& tensor, const std::vector<std::int64_t>& offsets) {
  const T* first = tensor.body().as<T>();
  std::vector<double> numbers;
  for (std::int64_t offset : offsets) {
    if constexpr (std::is_same_v<T, double>)
      numbers.push_back(first[offset]);
    else
      numbers.push_back(static_cast<double>(static_cast<float>(first[offset])));
  }
  if (tensor.rank() == 0) return {lone_float(numbers[0], tensor.dtype())};
  return aligned_floats(numbers, tensor.dtype());
}

template <class T>
std::vector<std::string> integer_words(const Tensor& tensor, const std::vector<std::int64_t>& offsets) {
  const T* first = tensor.body().as<T>();
  std::vector<std::string> words;
  std::size_t width = 0;
  for (std::int64_t offset : offsets) {
    words.push_back(std::to_string(first[offset]));
    width = std::max(width, words.back().size());
  }
  for (std::string& word : words) word = padded(word, width);
  return words;
}

std::vector<std::string> bool_words(const Tensor& tensor, const std::vector<std::int64_t>& offsets) {
  const bool* first = tensor.body().as<bool>();
  std::vector<std::string> words;
  for (std::int64_t offset : offsets)
    words.emplace_back(!first[offset] ? "False" : tensor.rank() == 0 ? "True" : " True");
  return words;
}

std::vector<std::string> words_of(const Tensor& tensor, const std::vector<std::int64_t>& offsets) {
  return with_type(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>)
      return bool_words(tensor, offsets);
    else if constexpr (std::is_integral_v<T>)
      return integer_words<T>(tensor, offsets);
    else
      return float_words<T>(tensor, offsets);
  });
}

}  // namespace

std::string detail::print(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  wait_for(tensor, {});
  if (tensor.numel() == 0) return "[]";
  PrintLayout layout(tensor);
  std::vector<std::string> words = words_of(tensor, layout.shown_offsets());
  return tensor.rank() == 0 ? words[0] : layout.text(words);
}

}  // namespace reel
