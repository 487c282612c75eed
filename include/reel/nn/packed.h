#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::nn {

struct PaddedOptions {
  /// What stands behind the end of a sequence.
  double value = 0;
};

/// Sequences of any lengths, 0 among them, in any order, one behind the other without padding. What works element by
/// element works on `elements`: `words.with(embedding(words.elements))`. Recurrent layers take Packed as it is.
///
///     Packed words = pack({first, second});                   // (5, D) and (2, D)
///     Packed states = lstm(words).output;                     // elements (7, H)
///     Tensor sentences = masked_mean(states);                 // (2, H)
struct Packed {
  Tensor elements;                    ///< (N, …): those of the first sequence, then those of the second …
  std::vector<std::int64_t> lengths;  ///< (B): how many elements each sequence has; N together

  /// How many sequences there are.
  std::int64_t size() const { return static_cast<std::int64_t>(lengths.size()); }
  /// How many elements the longest sequence has.
  std::int64_t longest() const;
  /// The same sequences with other elements. Throws: ShapeError unless there are as many.
  Packed with(const Tensor& others, Location where = Location::here()) const;
  /// A view of the elements of each sequence, (length, …). Throws: ShapeError unless the lengths fit; so do all below.
  std::vector<Tensor> sequences(Location where = Location::here()) const;
  /// Each sequence from the first step on: (longest, B, …).
  Tensor padded(PaddedOptions options = {}, Location where = Location::here()) const;
  /// Where `padded` has an element: (longest, B), bool.
  Tensor mask(Location where = Location::here()) const;
  /// The number of the sequence that each element belongs to: (N), i64.
  Tensor sequence_of_elements(Location where = Location::here()) const;
};

/// Sequences (length, …), alike but for their lengths.
/// Throws: ShapeError for no sequence, one of rank 0, or others that differ.
Packed pack(std::span<const Tensor> sequences, Location where = Location::here());
inline Packed pack(std::initializer_list<Tensor> sequences, Location where = Location::here()) {
  return pack(std::span(sequences.begin(), sequences.size()), where);
}
/// Of padded sequences (T, B, …), the first lengths[b] steps of each; lengths (B) of i32 or i64.
/// Throws: ShapeError, DTypeError; IndexError for a length outside [0, T].
Packed pack(const Arg& padded, const Tensor& lengths);

}  // namespace reel::nn
