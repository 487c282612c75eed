#include "model_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <reel/no_record.h>

#include "../../core/context.h"
#include "../../core/fail.h"
#include "../../core/storage.h"
#include "../../dispatch/listener_scope.h"
#include "../../ops/if_needed.h"
#include "../elements.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

// In the order of DType.
constexpr std::array onnx_types{OnnxType::f32, OnnxType::f64, OnnxType::bf16,    OnnxType::f16, OnnxType::i32,
                                OnnxType::i64, OnnxType::u8,  OnnxType::boolean, OnnxType::i8,  OnnxType::i16};
static_assert(onnx_types.size() == dtype_count);

Tensor in_rows(const Tensor& tensor) {
  Unobserved unobserved(context());
  NoRecord pause;
  return contiguous_if_needed(to_if_needed(tensor, cpu));
}

}  // namespace

OnnxType onnx_type(DType dtype) { return onnx_types[static_cast<std::size_t>(dtype)]; }

bool dtype_of(OnnxType type, DType& dtype) {
  for (std::size_t i = 0; i < onnx_types.size(); ++i)
    if (onnx_types[i] == type) {
      dtype = static_cast<DType>(i);
      return true;
    }
  return false;
}

OnnxTensor onnx_tensor(const std::string& name, const Tensor& tensor) {
  Tensor rows = in_rows(tensor);
  OnnxTensor array{.name = name, .type = onnx_type(tensor.dtype()), .dims = {}, .bytes = {}};
  Shape shape = tensor.shape();
  array.dims.assign(shape.begin(), shape.end());
  std::span<const std::byte> bytes = elements_of(rows);
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

Tensor tensor_from(const OnnxTensor& array, const char* function, Location where) {
  DType dtype;
  if (!dtype_of(array.type, dtype))
    fail<Error>(function, where, "the tensor '{}' has a type that reel has not", array.name);
  if (array.dims.size() > static_cast<std::size_t>(max_rank))
    fail<Error>(function, where, "the tensor '{}' has {} axes: a tensor has at most {}", array.name, array.dims.size(),
                max_rank);
  Shape shape(std::span(array.dims.data(), array.dims.size()));
  Tensor made = allocate(context(), {shape, dtype, cpu}, function, where);
  if (!array.bytes.empty()) std::memcpy(made.body().data, array.bytes.data(), array.bytes.size());
  if (dtype == boolean) make_bools(new_elements_of(made));
  return made;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  Tensor x = in_rows(a), y = in_rows(b);
  return std::ranges::equal(elements_of(x), elements_of(y));
}

}  // namespace reel::io::onnx
