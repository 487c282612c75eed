#include <algorithm>
#include <span>

#include "../../device/formula_loop.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"
#include "copy.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Contiguous parts, whose rows are interleaved in the rows of the result. All sizes are in words, of up to 16 bytes.
template <class Word>
struct Joining {
  static constexpr int most_parts = 200;

  Word* out;
  std::int64_t row_stride;  // the leading dimension of the result
  Split by_length;          // of these parts' share of a row
  bool narrow;              // true if indices of words have 31 bits
  int count;
  const Word* parts[most_parts];
  std::int64_t starts[most_parts + 1];

  REEL_DEVICE void operator()(std::int64_t i) const {
    Split::Parts found = by_length(i);
    if (narrow)
      copy(static_cast<std::uint32_t>(found.whole), static_cast<std::uint32_t>(found.rest));
    else
      copy(found.whole, found.rest);
  }

 private:
  template <class Index>
  REEL_DEVICE void copy(Index row, Index place) const {
    int low = 0, high = count;  // starts[low] <= place < starts[high]
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (static_cast<Index>(starts[middle]) <= place ? low : high) = middle;
    }
    auto start = static_cast<Index>(starts[low]), width = static_cast<Index>(starts[low + 1]) - start;
    out[row * static_cast<Index>(row_stride) + place] = parts[low][row * width + (place - start)];
  }
};

struct alignas(16) Wide16 {
  std::uint64_t word[2];
};

// The size in bytes of a part's rows.
std::int64_t row_bytes(const View& part, std::int64_t rows) {
  return part.numel / rows * static_cast<std::int64_t>(size_of(part.dtype));
}

template <class Word>
void join_words(const View& out, std::span<const View* const> parts, std::int64_t rows) {
  constexpr std::int64_t size = sizeof(Word);
  Joining<Word> joining;
  joining.out = out.as<Word>();
  joining.row_stride = row_bytes(out, rows) / size;
  joining.narrow = rows * joining.row_stride < std::int64_t{1} << 31;
  while (!parts.empty()) {
    std::size_t count = std::min<std::size_t>(parts.size(), Joining<Word>::most_parts);
    joining.count = 0;
    joining.starts[0] = 0;
    for (const View* part : parts.first(count)) {
      if (part->numel == 0) continue;
      std::int64_t start = joining.starts[joining.count];
      joining.parts[joining.count++] = part->as<const Word>();
      joining.starts[joining.count] = start + row_bytes(*part, rows) / size;
    }
    std::int64_t length = joining.starts[joining.count];
    joining.by_length = Split(length, rows * length);
    for_each(rows * length, joining);
    joining.out += length;
    parts = parts.subspan(count);
  }
}

void join(const View& out, std::span<const View* const> parts, std::int64_t rows) {
  auto common = reinterpret_cast<std::uintptr_t>(out.data);
  for (const View* part : parts)
    common |= reinterpret_cast<std::uintptr_t>(part->data) | static_cast<std::uintptr_t>(row_bytes(*part, rows));
  if (common % 16 == 0)
    join_words<Wide16>(out, parts, rows);
  else if (common % 8 == 0)
    join_words<std::uint64_t>(out, parts, rows);
  else if (common % 4 == 0)
    join_words<std::uint32_t>(out, parts, rows);
  else if (common % 2 == 0)
    join_words<std::uint16_t>(out, parts, rows);
  else
    join_words<std::uint8_t>(out, parts, rows);
}

void concat(const View& out, std::span<const View* const> parts, int axis) {
  if (out.numel == 0) return;
  bool contiguous = out.contiguous;
  for (const View* part : parts) contiguous &= part->contiguous;
  if (contiguous) {
    std::int64_t rows = 1;
    for (int i = 0; i < axis; ++i) rows *= out.dims[i];
    return join(out, parts, rows);
  }
  std::int64_t start = 0;
  for (const View* part : parts) {
    std::int64_t strides[8];
    for (int i = 0; i < part->rank; ++i) strides[i] = out.strides[part->rank == out.rank || i < axis ? i : i + 1];
    View place = *part;
    place.data = out.as<char>() + start * out.strides[axis] * static_cast<std::int64_t>(size_of(out.dtype));
    place.strides = strides;
    place.contiguous = false;
    move_elements(place, *part);
    start += part->rank == out.rank ? part->dims[axis] : 1;
  }
}

}  // namespace

void fill_concat(KernelTable& table) { table.concat = concat; }

}  // namespace reel::detail::inline REEL_TARGET
