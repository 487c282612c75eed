#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device.h"
#include "launch.h"
#include "recording.h"

// One kernel over the elements of many tensors, or of many tuples of tensors of one size, as parameters with their
// gradients are. Each is divided into chunks, and a group of threads processes one of them. The addresses are arguments of
// the kernel or, if they are too many, a table in device memory.

namespace reel::detail::inline REEL_TARGET {

/// A tensor, or a tuple of tensors of `count` elements each.
template <int operand_count>
struct TensorPart {
  void* data[operand_count];
  std::int64_t count;
  std::int64_t end = 0;  ///< the number of chunks of it and of all parts before
};

/// The parts as a kernel's argument.
template <int operand_count>
class TensorParts {
 public:
  using Part = TensorPart<operand_count>;
  /// The number of parts that fit the arguments of a kernel.
  static constexpr std::size_t room = 3600 / sizeof(Part);

  TensorParts(const Part* parts, std::size_t count, const Part* table, std::int64_t first_chunk)
      : table_(table), first_chunk_(first_chunk), count_(static_cast<int>(count)) {
    if (!table)
      for (std::size_t i = 0; i < count; ++i) parts_[i] = parts[i];
  }

  /// The number of a group's chunk among the chunks of all parts.
  REEL_DEVICE std::int64_t number(std::int64_t group) const { return first_chunk_ + group; }

  struct Chunk {
    const Part& part;
    std::int64_t begin;  ///< its first element
  };
  /// Finds a chunk of `size` elements, the last of a part excepted.
  REEL_DEVICE Chunk chunk(std::int64_t number, std::int64_t size) const {
    const Part* parts = table_ ? table_ : parts_;
    int low = 0, high = count_ - 1;
    while (low < high) {
      int middle = (low + high) / 2;
      if (number < parts[middle].end)
        high = middle;
      else
        low = middle + 1;
    }
    std::int64_t before = low == 0 ? first_chunk_ : parts[low - 1].end;
    return {parts[low], (number - before) * size};
  }

 private:
  const Part* table_;
  std::int64_t first_chunk_;
  int count_;
  Part parts_[room];
};

/// Sets the ends of all parts for chunks of `size` elements, and drops those without elements. Returns the number of
/// chunks.
template <int operand_count>
std::int64_t divide_into_chunks(std::vector<TensorPart<operand_count>>& parts, std::int64_t size) {
  std::erase_if(parts, [](const auto& part) { return part.count == 0; });
  std::int64_t chunks = 0;
  for (auto& part : parts) part.end = chunks += (part.count + size - 1) / size;
  return chunks;
}

/// Runs make(TensorParts) for each chunk of divided parts, by groups of `threads`, more than a warp's.
template <int operand_count, class Make>
void for_each_chunk(const std::vector<TensorPart<operand_count>>& parts, int threads, const Make& make) {
  using Parts = TensorParts<operand_count>;
  using Part = TensorPart<operand_count>;
  if (parts.empty()) return;
  // A graph would copy the table at each replay; it launches several kernels as fast as one.
  if (parts.size() > Parts::room && !records_graph()) {
    Scratch table(parts.size() * sizeof(Part));
    copy_to_device(table.as<void>(), parts.data(), parts.size() * sizeof(Part));
    return for_each_block(parts.back().end, threads, 0,
                          make(Parts(parts.data(), parts.size(), table.as<const Part>(), 0)));
  }
  std::int64_t first_chunk = 0;
  for (std::size_t first = 0; first < parts.size(); first += Parts::room) {
    std::size_t count = parts.size() - first < Parts::room ? parts.size() - first : Parts::room;
    std::int64_t end = parts[first + count - 1].end;
    for_each_block(end - first_chunk, threads, 0, make(Parts(parts.data() + first, count, nullptr, first_chunk)));
    first_chunk = end;
  }
}

}  // namespace reel::detail::inline REEL_TARGET
