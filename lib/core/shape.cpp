#include <reel/error.h>
#include <reel/shape.h>

namespace reel {

Shape::Shape(std::span<const std::int64_t> sizes, Location where) {
  if (sizes.size() > static_cast<std::size_t>(max_rank))
    throw ShapeError("a shape has at most 8 sizes, not " + std::to_string(sizes.size()), where);
  for (std::int64_t size : sizes) sizes_[rank_++] = size;
}

void Shape::throw_index() const { throw IndexError("an index is out of range for the shape " + to_string(*this), {}); }

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (std::int64_t size : *this) product *= size;
  return product;
}

void Shape::push_back(std::int64_t size, Location where) {
  if (rank_ == max_rank) throw ShapeError("a shape has at most 8 sizes: there is no room for a ninth", where);
  sizes_[rank_++] = size;
}

bool operator==(const Shape& a, const Shape& b) {
  if (a.rank_ != b.rank_) return false;
  for (int i = 0; i < a.rank_; ++i)
    if (a.sizes_[i] != b.sizes_[i]) return false;
  return true;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

bool broadcast(const Shape& a, const Shape& b, Shape& result) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape joined = longer;  // `result` may be one of the operands
  int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    std::int64_t& size = joined[i + shift];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1) return false;
    size = shorter[i];
  }
  result = joined;
  return true;
}

}  // namespace reel
