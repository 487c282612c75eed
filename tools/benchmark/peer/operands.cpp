#include "operands.h"

#include <cstring>

namespace reel_bench {

namespace {

at::ScalarType torch_type(reel::DType dtype) {
  switch (dtype) {
    case reel::DType::i64: return at::kLong;
    case reel::DType::bf16: return at::kBFloat16;
    default: return at::kFloat;
  }
}

}  // namespace

Pair both(reel::Tensor ours) {
  TorchRecords tensors_that_can_be_saved;
  reel::Shape shape = ours.shape();
  at::Tensor theirs = at::empty(std::vector<std::int64_t>(shape.begin(), shape.end()), torch_type(ours.dtype()));
  std::memcpy(theirs.data_ptr(), ours.body().data, static_cast<std::size_t>(ours.numel()) * size_of(ours.dtype()));
  return {std::move(ours), std::move(theirs)};
}

Pair numbers(const reel::Shape& shape, double low, double high) {
  return both(reel::copy(reel::rand(shape) * (high - low) + low));
}

Pair indices(std::int64_t count, std::int64_t below) {
  return both(reel::to(reel::rand({count}, {.dtype = reel::f64}) * static_cast<double>(below), reel::i64));
}

}  // namespace reel_bench
