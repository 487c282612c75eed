#include <algorithm>
#include <cmath>

#include "interpreter.h"
#include "sizes.h"

// Memories and the views of them.

namespace reel_test::programs {

int Interpreter::make(const Sizes& shape, std::vector<Scalar> values) {
  for (Scalar& value : values) {
    value.node = -1;
    scale_ = std::max(scale_, std::abs(value.value));
  }
  memories_.push_back({std::move(values)});
  tensors_.push_back({.memory = static_cast<int>(memories_.size()) - 1, .shape = shape, .strides = row_major(shape)});
  return static_cast<int>(tensors_.size()) - 1;
}

int Interpreter::in_order_of(std::initializer_list<int> operands, int result) {
  ModelTensor& made = at(result);
  std::vector<Scalar> logical = values(made);
  const ModelTensor* like = nullptr;
  for (int operand : operands)
    if (const ModelTensor& x = at(operand); x.shape == made.shape && (!like || (repeats(*like) && !repeats(x))))
      like = &x;
  if (!like || logical.empty()) return result;
  // From the largest stride to the smallest; one of stride 0 is left where it is, whatever passes it.
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < like->shape.size(); ++axis) {
    if (like->shape[axis] == 1) continue;
    auto stride = [&](std::size_t place) { return std::abs(like->strides[axes[place]]); };
    std::int64_t own = std::abs(like->strides[axis]);
    std::size_t place = axes.size();
    for (std::size_t k = axes.size(); own != 0 && k > 0 && (stride(k - 1) == 0 || stride(k - 1) < own); --k)
      if (stride(k - 1) != 0) place = k - 1;
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(place), axis);
  }
  std::int64_t step = 1;
  for (std::size_t k = axes.size(); k-- > 0; step *= made.shape[axes[k]]) made.strides[axes[k]] = step;
  std::vector<std::int64_t> to = places(made);
  for (std::size_t i = 0; i < to.size(); ++i) memory_of(result).cells[static_cast<std::size_t>(to[i])] = logical[i];
  return result;
}

int Interpreter::view(int tensor, const Sizes& shape, const Sizes& strides, std::int64_t offset) {
  tensors_.push_back({.memory = at(tensor).memory,
                      .shape = shape,
                      .strides = strides,
                      .offset = at(tensor).offset + offset,
                      .version = memory_of(tensor).version});
  return static_cast<int>(tensors_.size()) - 1;
}

std::vector<std::int64_t> Interpreter::places(const ModelTensor& tensor) const {
  std::vector<std::int64_t> places;
  std::int64_t count = count_of(tensor.shape);
  places.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = tensor.offset, rest = i;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      place += rest % tensor.shape[axis] * tensor.strides[axis];
      rest /= tensor.shape[axis];
    }
    places.push_back(place);
  }
  return places;
}

std::vector<Scalar> Interpreter::values(const ModelTensor& tensor) const {
  std::vector<Scalar> values;
  for (std::int64_t place : places(tensor)) values.push_back(memory(tensor).cells[static_cast<std::size_t>(place)]);
  return values;
}

bool Interpreter::repeats(const ModelTensor& tensor) const {
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
    if (tensor.strides[axis] == 0 && tensor.shape[axis] > 1) return true;
  return false;
}

}  // namespace reel_test::programs
