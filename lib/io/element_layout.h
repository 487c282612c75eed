#pragma once

#include <cstdint>
#include <optional>

#include <reel/shape.h>

namespace reel::io {

/// Where the elements of a tensor are within a storage. Strides and offset are counted in elements.
struct ElementLayout {
  Shape shape, strides;
  std::int64_t offset = 0;
};

/// The lowest and the highest offset of a tensor's elements.
struct ElementRange {
  std::int64_t first, last;
};

/// The number of elements of a shape; none if it is negative or larger than any memory.
std::optional<std::int64_t> element_count(const Shape& shape);

/// The range of a tensor's elements; none if it has no element, or if offsets overflow.
std::optional<ElementRange> element_range(const ElementLayout& layout);

/// Returns true if every element is within a storage of `numel` elements.
bool fits_storage(const ElementLayout& layout, std::int64_t numel);

}  // namespace reel::io
