#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::nn {

/// Options of `Packed::padded`.
struct PaddedOptions {
  /// The value of the padding. Default 0.
  double value = 0;
};

/// A batch of sequences of any lengths, including 0, in any order, concatenated without padding. Functions that work
/// element by element are applied to `elements`: `words.with(embedding(words.elements))`. Recurrent layers take Packed
/// itself.
///
///     Packed words = pack({first, second});                   // (5, D) and (2, D)
///     Packed states = lstm(words).output;                     // elements (7, H)
///     Tensor sentences = masked_mean(states);                 // (2, H)
struct Packed {
  Tensor elements;                    ///< (N, …): those of the first sequence, then those of the second …
  std::vector<std::int64_t> lengths;  ///< (B): the number of elements of each sequence; their sum is N

  /// The number of sequences, B.
  std::int64_t size() const { return static_cast<std::int64_t>(lengths.size()); }
  /// The length of the longest sequence; 0 without sequences.
  std::int64_t longest() const;
  /// Sequences of these lengths with other elements (N, …). Throws: ShapeError unless there are as many.
  Packed with(const Tensor& others, Location where = Location::here()) const;
  /// A view of the elements of each sequence, (length, …). Throws: ShapeError unless the lengths fit the elements.
  std::vector<Tensor> sequences(Location where = Location::here()) const;
  /// The sequences side by side, each from step 0 on, padded at the end: (longest, B, …).
  /// Throws: ShapeError unless the lengths fit the elements.
  Tensor padded(PaddedOptions options = {}, Location where = Location::here()) const;
  /// True where `padded` has an element: (longest, B), bool. Throws: ShapeError unless the lengths fit the elements.
  Tensor mask(Location where = Location::here()) const;
  /// The index of the sequence that each element belongs to: (N), i64.
  /// Throws: ShapeError unless the lengths fit the elements.
  Tensor sequence_of_elements(Location where = Location::here()) const;
};

/// Packs sequences (length, …), whose shapes agree except for their lengths.
/// Throws: ShapeError for no sequence, one of rank 0, or shapes that differ; Error for an undefined one.
Packed pack(std::span<const Tensor> sequences, Location where = Location::here());
/// Packs sequences (length, …), whose shapes agree except for their lengths.
/// Throws: ShapeError for no sequence, one of rank 0, or shapes that differ; Error for an undefined one.
inline Packed pack(std::initializer_list<Tensor> sequences, Location where = Location::here()) {
  return pack(std::span(sequences.begin(), sequences.size()), where);
}
/// Packs the first lengths[b] steps of each padded sequence (T, B, …); lengths (B) of i32 or i64.
/// Throws: ShapeError unless the shapes fit; DTypeError for other lengths; IndexError for a length outside [0, T];
/// Error for undefined ones.
Packed pack(const Arg& padded, const Tensor& lengths);

}  // namespace reel::nn
