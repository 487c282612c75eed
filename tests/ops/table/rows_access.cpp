#include "ops/table/table.h"

// Elements read and written one by one, without ops.

namespace reel_test {

using namespace reel;

namespace {

// Calls f with the element type of a dtype.
template <class F>
Tensor with_element_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f64: return f(double{});
    case DType::bf16: return f(BFloat16{});
    case DType::f16: return f(Float16{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(static_cast<unsigned char>(0));
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::boolean: return f(bool{});
    default: return f(float{});
  }
}

Array unchanged(const Arrays& x) { return x[0]; }

// Copies a tensor of one element by item().
Tensor by_item(const Tensor& x) {
  return with_element_type(x.dtype(), [&]<class T>(T) {
    Tensor y = zeros(x.shape(), {.dtype = x.dtype()});
    y.write<T>()[0] = x.item<T>();
    return y;
  });
}

// Every element at its strides.
Tensor by_pointer(const Tensor& x) {
  return with_element_type(x.dtype(), [&]<class T>(T) {
    Tensor y = zeros(x.shape(), {.dtype = x.dtype()});
    Shape strides = x.strides();
    const T* first = x.strided_data<T>();
    auto to = y.write<T>();
    std::int64_t next = 0;
    for_each_index(x.shape(), [&](const Index& index) {
      std::int64_t offset = 0;
      for (int axis = 0; axis < x.rank(); ++axis) offset += index[static_cast<std::size_t>(axis)] * strides[axis];
      to[next++] = first[offset];
    });
    return y;
  });
}

// Over a tensor that holds other numbers.
Tensor by_write(const Tensor& x) {
  return with_element_type(x.dtype(), [&]<class T>(T) {
    Tensor y = ones(x.shape(), {.dtype = x.dtype()});
    std::vector<T> values = x.to_vector<T>();
    auto to = y.write<T>();
    for (std::int64_t i = 0; i < to.size(); ++i) to[i] = values[static_cast<std::size_t>(i)];
    return y;
  });
}

// From its values.
Tensor by_tensor(const Tensor& x) {
  return with_element_type(x.dtype(), [&]<class T>(T) { return tensor(x.to_vector<T>(), x.shape()); });
}

void add_rows(std::vector<Row>& rows) {
  struct Access {
    std::string name;
    Tensor (*run)(const Tensor& x);
    std::vector<Shape> shapes;
  };
  const Access accesses[] = {
      {"item", by_item, {{}, {1}, {1, 1, 1}}},
      {"data", by_pointer, {{}, {5}, {3, 4}, {2, 0}, {2, 1, 3, 2}}},
      {"write", by_write, {{}, {5}, {3, 4}, {2, 0}, {600}}},
      {"tensor", by_tensor, {{}, {5}, {3, 4}, {2, 0}, {2, 1, 3, 2}}},
  };
  for (const Access& access : accesses)
    for (const Shape& shape : access.shapes)
      rows.push_back({.name = access.name + to_string(shape),
                      .run = [run = access.run](auto x) { return run(x[0]); },
                      .inputs = {{shape}},
                      .reference = unchanged,
                      .ulps = 0,
                      .dtypes = all_dtypes,
                      .differentiable = false});
}

}  // namespace

const RowFamily access_rows{add_rows};

}  // namespace reel_test
