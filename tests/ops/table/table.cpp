#include "ops/table/table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <sstream>

namespace reel_test {

using namespace reel;

double Array::scale(std::size_t i) const { return scales.empty() ? std::abs(values[i]) : scales[i]; }

void for_each_index(const Shape& shape, const std::function<void(const Index&)>& f) {
  Index index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t left = shape.numel(); left > 0; --left) {
    f(index);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      index[axis] = 0;
    }
  }
}

double at(const Array& array, const Index& index) {
  std::size_t extra = index.size() - static_cast<std::size_t>(array.shape.rank()), place = 0;
  for (int axis = 0; axis < array.shape.rank(); ++axis) {
    std::int64_t size = array.shape[axis];
    std::int64_t i = size == 1 ? 0 : index[extra + static_cast<std::size_t>(axis)];
    place = place * static_cast<std::size_t>(size) + static_cast<std::size_t>(i);
  }
  return array.values[place];
}

Array make(const Shape& shape, const std::function<double(const Index&)>& f) {
  Array array{shape, {}};
  for_each_index(shape, [&](const Index& index) { array.values.push_back(f(index)); });
  return array;
}

Shape broadcast_all(const Arrays& inputs) {
  Shape shape;
  for (const Array& input : inputs) broadcast(Shape(shape), input.shape, shape);
  return shape;
}

namespace {

const RowFamily* const families[] = {
    &access_rows,     &create_rows,      &elementwise_rows,    &reduce_rows,         &shape_rows,     &arrange_rows,
    &index_rows,      &selection_rows,   &sort_rows,           &order_rows,          &in_place_rows,  &matmul_rows,
    &einsum_rows,     &products_rows,    &network_rows,        &activation_rows,     &resample_rows,  &normalise_rows,
    &pooling_rows,    &convolution_rows, &recurrent_rows,      &attention_rows,      &embedding_rows, &loss_rows,
    &label_loss_rows, &ctc_rows,         &linear_algebra_rows, &decompositions_rows, &sparse_rows,    &sampling_rows,
    &functional_rows};

std::vector<Row> with_ops_named(std::vector<Row> rows) {
  for (Row& row : rows) {
    auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (row.op.empty()) row.op.assign(row.name.begin(), std::find_if_not(row.name.begin(), row.name.end(), is_letter));
  }
  return rows;
}

}  // namespace

const std::vector<Row>& table() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> made;
    for (const RowFamily* family : families) family->add(made);
    return with_ops_named(std::move(made));
  }();
  return rows;
}

std::vector<Row> random_table(std::uint64_t seed) {
  Random random(seed);
  std::vector<Row> made;
  for (const RowFamily* family : families)
    if (family->add_random) family->add_random(made, random);
  return with_ops_named(std::move(made));
}

std::int64_t random_size(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution(low, high)(random);
}

Shape random_shape(Random& random, int rank, std::int64_t high) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(random_size(random, 1, high));
  return shape;
}

namespace {

template <class T>
Tensor tensor_of(const std::vector<double>& values, const Shape& shape) {
  std::vector<T> elements;
  for (double value : values) {
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>)
      elements.push_back(T(static_cast<float>(value)));
    else if constexpr (std::is_integral_v<T>)
      elements.push_back(static_cast<T>(std::lround(std::is_signed_v<T> ? value * 4 : std::abs(value * 4))));
    else
      elements.push_back(static_cast<T>(value));
  }
  return tensor(std::span<const T>(elements), shape);
}

Tensor flags_of(const std::vector<double>& values, const Shape& shape) {
  auto flags = std::make_unique<bool[]>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) flags[i] = values[i] > 0;
  return tensor(std::span<const bool>(flags.get(), values.size()), shape);
}

Tensor in_dtype(const std::vector<double>& values, const Shape& shape, DType dtype) {
  switch (dtype) {
    case DType::f32: return tensor_of<float>(values, shape);
    case DType::f64: return tensor_of<double>(values, shape);
    case DType::bf16: return tensor_of<BFloat16>(values, shape);
    case DType::f16: return tensor_of<Float16>(values, shape);
    case DType::i32: return tensor_of<std::int32_t>(values, shape);
    case DType::i64: return tensor_of<std::int64_t>(values, shape);
    case DType::u8: return tensor_of<unsigned char>(values, shape);
    case DType::i8: return tensor_of<std::int8_t>(values, shape);
    case DType::i16: return tensor_of<std::int16_t>(values, shape);
    case DType::boolean: return flags_of(values, shape);
  }
  return {};
}

double drawn(Fill fill, Random& random) {
  double number = std::uniform_real_distribution(-2.0, 2.0)(random);
  switch (fill) {
    case Fill::positive: return 0.3 + 0.425 * std::abs(2 - number);
    case Fill::nonzero: return number + (number < 0 ? -0.3 : 0.3) * (1 - std::abs(number) / 2);
    case Fill::unit: return 0.45 * number;
    case Fill::coarse: return std::round(0.45 * 64 * number) / 64;
    default: return number;
  }
}

std::vector<double> draw(const Input& input, Random& random) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < input.shape.numel(); ++i)
    values.push_back(input.fill == Fill::spread ? -2 + 0.05 * static_cast<double>(i) : drawn(input.fill, random));
  if (input.fill == Fill::spread) std::shuffle(values.begin(), values.end(), random);
  return values;
}

template <class T>
double as_double(T element) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>)
    return static_cast<double>(static_cast<float>(element));
  else
    return static_cast<double>(element);
}

template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  Shape strides = tensor.strides();
  const std::int64_t* steps = strides.begin();
  const T* first = tensor.strided_data<T>();
  std::vector<T> elements;
  elements.reserve(static_cast<std::size_t>(tensor.numel()));
  for_each_index(tensor.shape(), [&](const Index& index) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * steps[axis];
    elements.push_back(first[offset]);
  });
  return elements;
}

template <class F>
auto with_elements(const Tensor& tensor, F f) {
  switch (tensor.dtype()) {
    case DType::f32: return f(elements_of<float>(tensor));
    case DType::f64: return f(elements_of<double>(tensor));
    case DType::bf16: return f(elements_of<BFloat16>(tensor));
    case DType::f16: return f(elements_of<Float16>(tensor));
    case DType::i32: return f(elements_of<std::int32_t>(tensor));
    case DType::i64: return f(elements_of<std::int64_t>(tensor));
    case DType::u8: return f(elements_of<unsigned char>(tensor));
    case DType::i8: return f(elements_of<std::int8_t>(tensor));
    case DType::i16: return f(elements_of<std::int16_t>(tensor));
    default: return f(elements_of<bool>(tensor));
  }
}

}  // namespace

std::vector<Tensor> draw_inputs(const Row& row, DType dtype, std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> tensors;
  for (const Input& input : row.inputs) {
    if (!input.indices.empty() || input.fill == Fill::indices)
      tensors.push_back(tensor(input.indices, input.shape));
    else
      tensors.push_back(in_dtype(draw(input, random), input.shape, input.fill == Fill::flags ? boolean : dtype));
  }
  return tensors;
}

Array array_of(const Tensor& tensor) {
  Array array{tensor.shape(), {}};
  with_elements(tensor, [&](const auto& elements) {
    for (auto element : elements) array.values.push_back(as_double(element));
  });
  return array;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  return with_elements(a, [&]<class T>(const std::vector<T>& left) {
    std::vector<T> right = elements_of<T>(b);
    if constexpr (std::is_same_v<T, bool>)
      return left == right;
    else
      return left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0;
  });
}

double last_place(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-23;
    case DType::f64: return 0x1p-52;
    case DType::bf16: return 0x1p-7;
    case DType::f16: return 0x1p-10;
    default: return 0;
  }
}

std::string mismatch(const Row& row, const Tensor& y, const Array& expected) {
  Array found = array_of(y);
  std::ostringstream text;
  if (!(found.shape == expected.shape)) {
    text << "shape " << to_string(found.shape) << " instead of " << to_string(expected.shape);
    return text.str();
  }
  bool half = y.dtype() == bf16 || y.dtype() == f16;
  double worst = 0;
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    double want = expected.values[i], have = found.values[i];
    if (have == want || (std::isnan(have) && std::isnan(want))) continue;
    double bound = row.ulps * last_place(y.dtype()) * expected.scale(i);
    // Each op computes halves in f32 and rounds once; no last place of f16 is finer than 2^-24.
    if (half)
      bound =
          row.half_roundings * 0.5 * std::max(last_place(y.dtype()) * std::abs(want), y.dtype() == f16 ? 0x1p-24 : 0) +
          (row.ulps + 0.5) * last_place(f32) * expected.scale(i);
    double excess = std::abs(have - want) / bound;
    if (excess <= 1 || (worst > 0 && excess <= worst)) continue;
    worst = excess;
    text.str("");
    text << "element " << i << " is " << have << " instead of " << want << ", off by " << excess << " times the bound";
  }
  return text.str();
}

}  // namespace reel_test
