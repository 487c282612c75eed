#include "element_layout.h"

#include <algorithm>

#include "../core/storage.h"

namespace reel::io {

std::optional<std::int64_t> element_count(const Shape& shape) {
  std::int64_t count = 1;
  bool overflow = false;
  for (std::int64_t size : shape) {
    if (size < 0) return {};
    // Sizes that overflow are refused even if another size is 0.
    overflow |= __builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count);
  }
  if (overflow || count > detail::most_elements) return {};
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? count : 0;
}

std::optional<ElementRange> element_range(const ElementLayout& layout) {
  ElementRange range{layout.offset, layout.offset};
  bool overflow = false;
  for (int i = 0; i < layout.shape.rank(); ++i) {
    std::int64_t size = layout.shape[i], stride = layout.strides[i], distance = 0;
    if (size < 1) return {};
    overflow |= __builtin_mul_overflow(size - 1, stride, &distance);
    std::int64_t& end = distance < 0 ? range.first : range.last;
    overflow |= __builtin_add_overflow(end, distance, &end);
  }
  if (overflow) return {};
  return range;
}

bool fits_storage(const ElementLayout& layout, std::int64_t numel) {
  std::optional<std::int64_t> count = element_count(layout.shape);
  if (!count || layout.offset < 0) return false;
  if (*count == 0) return layout.offset <= numel;
  std::optional<ElementRange> range = element_range(layout);
  return range && range->first >= 0 && range->last < numel;
}

}  // namespace reel::io
