#include "packed.h"
#include "../../core/memory_error.h"

#include <algorithm>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../ops/recurrent/packing.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* name_of_type = "Packed";

// Reshapes (N, …) to (sizes, …).
Tensor with_first_axes(const Tensor& x, const Shape& sizes) {
  Shape shape = sizes;
  for (int axis = 1; axis < x.rank(); ++axis) shape.push_back(x.size(axis));
  return reshape(x, shape);
}

}  // namespace

void check_packed(const char* name, const Packed& packed, Location where) {
  if (!packed.elements.defined()) fail<Error>(name, where, "the elements are an undefined tensor");
  std::int64_t count = 0;
  for (std::int64_t length : packed.lengths) {
    if (length < 0 || __builtin_add_overflow(count, length, &count))
      fail<ShapeError>(name, where, "a sequence cannot have the length {}", length);
  }
  if (packed.elements.rank() == 0 || packed.elements.size(0) != count)
    fail<ShapeError>(name, where, "elements {} are not those of {} sequences with {} elements together",
                     describe(packed.elements), packed.size(), count);
}

std::int64_t Packed::longest() const { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }

Packed Packed::with(const Tensor& others, Location where) const {
  return with_memory_error(name_of_type, where, [&]() -> Packed {
    Packed changed{others, lengths};
    check_packed(name_of_type, changed, where);
    return changed;
  });
}

std::vector<Tensor> Packed::sequences(Location where) const {
  return with_memory_error(name_of_type, where, [&]() -> std::vector<Tensor> {
    check_packed(name_of_type, *this, where);
    if (lengths.empty()) return {};
    return split(Arg(elements, where), lengths);
  });
}

Tensor Packed::padded(PaddedOptions options, Location where) const {
  return with_memory_error(name_of_type, where, [&]() -> Tensor {
    check_packed(name_of_type, *this, where);
    DeviceGuard here(elements.device());
    CallerScope caller(where);
    std::vector<std::int64_t> places;
    places.reserve(static_cast<std::size_t>(elements.size(0)));
    for (std::int64_t sequence = 0; sequence < size(); ++sequence)
      for (std::int64_t step = 0; step < lengths[static_cast<std::size_t>(sequence)]; ++step)
        places.push_back(step * size() + sequence);
    Shape rows = elements.shape();
    rows[0] = longest() * size();
    Tensor background = full(rows, options.value, {.dtype = elements.dtype(), .device = elements.device()});
    return with_first_axes(index_put(background, {tensor(places)}, elements), {longest(), size()});
  });
}

Tensor Packed::mask(Location where) const {
  check_packed(name_of_type, *this, where);
  DeviceGuard here(elements.device());
  CallerScope caller(where);
  return unsqueeze(arange(longest()), 1) < tensor(lengths);
}

Tensor Packed::sequence_of_elements(Location where) const {
  return with_memory_error(name_of_type, where, [&]() -> Tensor {
    check_packed(name_of_type, *this, where);
    DeviceGuard here(elements.device());
    std::vector<std::int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(elements.size(0)));
    for (std::size_t sequence = 0; sequence < lengths.size(); ++sequence)
      numbers.insert(numbers.end(), static_cast<std::size_t>(lengths[sequence]), static_cast<std::int64_t>(sequence));
    return tensor(numbers, where);
  });
}

Packed pack(std::span<const Tensor> sequences, Location where) {
  return with_memory_error("pack", where, [&]() -> Packed {
    if (sequences.empty()) fail<ShapeError>("pack", where, "takes at least one sequence");
    Packed packed;
    for (const Tensor& sequence : sequences) {
      if (!sequence.defined()) fail<Error>("pack", where, "a sequence is an undefined tensor");
      if (sequence.rank() == 0)
        fail<ShapeError>("pack", where, "a sequence (length, …) cannot be {}", describe(sequence));
      packed.lengths.push_back(sequence.size(0));
    }
    packed.elements = concat(sequences, 0, where);
    return packed;
  });
}

Packed pack(const Arg& padded, const Tensor& lengths) {
  return with_memory_error("pack", padded.location(), [&]() -> Packed {
    const Tensor& x = tensor_of("pack", padded);
    Location where = padded.location();
    CallerScope caller(where, "pack");
    if (x.rank() < 2) fail<ShapeError>("pack", where, "{} is not (T, B, …)", describe(x));
    if (!lengths.defined()) fail<Error>("pack", where, "the lengths are an undefined tensor");
    Packed packed{{}, checked_lengths("pack", lengths, x, where)};
    std::vector<std::int64_t> places;
    for (std::int64_t sequence = 0; sequence < packed.size(); ++sequence)
      for (std::int64_t step = 0; step < packed.lengths[static_cast<std::size_t>(sequence)]; ++step)
        places.push_back(step * packed.size() + sequence);
    DeviceGuard here(x.device());
    packed.elements = index_select(flatten(x, 0, 1), 0, tensor(places));
    return packed;
  });
}

}  // namespace reel::nn
