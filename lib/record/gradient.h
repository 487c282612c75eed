#pragma once

#include <span>

#include <reel/tensor.h>

#include "entry.h"

namespace reel::detail {

class BackwardPass;
class RowDivision;

/// The argument of an op's gradient function: the recorded call, the gradients of its outputs, and the functions that
/// accumulate the gradients of its inputs. A gradient function is written with public ops, so that it can be
/// differentiated itself.
class Gradient {
 public:
  /// `collected`: receives the gradients of the inputs, one each, instead of the backward pass's sums.
  Gradient(BackwardPass& pass, Entry& entry, std::span<Tensor> outputs, bool recording,
           std::span<Tensor> collected = {})
      : pass_(pass), entry_(entry), outputs_(outputs), recording_(recording), collected_(collected) {}

  const OpInfo* op() const { return entry_.op; }
  /// Returns true if the gradient of input i is needed.
  bool wants(std::size_t i) const;
  std::size_t input_count() const { return entry_.input_count; }
  std::size_t output_count() const { return entry_.output_count; }
  /// Returns true if a gradient flowed back to output i.
  bool has_output(std::size_t i) const { return outputs_[i].defined(); }
  /// The gradient of output i; zeros if none flowed back to it.
  const Tensor& output(std::size_t i = 0);
  /// The gradient of output i with elements of its own, for functions that keep or change it; zeros if none flowed
  /// back.
  const Tensor& own_output(std::size_t i);
  /// Moves the gradient of output i out, so that it can be changed in place; zeros if none flowed back.
  Tensor take_output(std::size_t i = 0);
  /// Moves the gradient of output i out for another backward pass; undefined if none flowed back.
  Tensor hand_over(std::size_t i);
  /// A saved input or output. Throws: TapeError if it was overwritten since.
  const Tensor& saved_input(int i) const { return saved(i); }
  const Tensor& saved_output(int i = 0) const { return saved(-1 - i); }
  /// Value k of an op that chooses itself what it saves. Throws: TapeError if it was overwritten since.
  const Tensor& saved_value(std::size_t k) const { return unchanged(entry_.saved()[k]); }
  /// The dtype and shape that the gradient of a tracked input must have.
  const SlotForm& input_form(std::size_t i) const;
  const SlotForm& output_form(std::size_t i) const;
  /// The shape of an input; of an untracked input only if the op keeps input shapes.
  Shape input_shape(std::size_t i) const;
  DType input_dtype(std::size_t i) const;
  template <Attributes T>
  const T& attributes() const {
    assert(entry_.attribute_bytes == sizeof(T));
    return *reinterpret_cast<const T*>(entry_.attributes());
  }
  std::span<const std::byte> attribute_bytes() const { return {entry_.attributes(), entry_.attribute_bytes}; }
  /// Returns true if an outer tape records this gradient: then it must be composed of differentiable ops.
  bool recording() const { return recording_; }
  Location where() const { return entry_.where(); }
  /// Returns true if nothing reads a saved value after this call, so that it may be overwritten: the backward pass
  /// releases the entry, and nothing else holds the value.
  bool is_last_use_of(const Tensor& saved) const;

  /// Adds to the gradient of input i. Axes along which the input was broadcast are summed here.
  void accumulate(std::size_t i, Tensor gradient);
  /// For an op whose gradient is a backward pass of its own: gives the inner pass the outer one's settings. Returns
  /// true if sums are to be passed through the inner pass, so that they are formed in the order in which they would be
  /// without it.
  bool hand_totals_to(BackwardPass& inner) const;
  /// Moves the sum for input i from the outer pass to a slot of the inner one; `take_total_back` moves it back.
  void hand_total(std::size_t i, BackwardPass& inner, std::uint32_t slot);
  void take_total_back(std::size_t i, BackwardPass& inner, std::uint32_t slot);
  /// For an op whose output is a part of input i: adds the output's gradient to that part of input i's sum, with the
  /// in-place op `op` and this entry's attributes. Returns false if there is no sum yet, or it cannot be changed.
  bool add_to_part(std::size_t i, const OpInfo& op);
  /// For an op whose output is its inputs concatenated along axis 0: adds to the gradient of each its rows of
  /// the output's gradient.
  void accumulate_parts(const RowDivision& parts);
  /// For an op whose outputs are rows of its input: adds the outputs' gradients to the rows of the input's.
  void accumulate_whole(const RowDivision& parts);
  /// Adds a b to the gradient of input i, without a temporary if no other handle sees the sum.
  void accumulate_product(std::size_t i, const Tensor& a, const Tensor& b);
  /// For an op with one output: adds the output's gradient to that of input i. `last`: moves it, so that it is gone
  /// afterwards.
  void pass_on(std::size_t i, bool last);
  /// For an op with one output: applies an elementwise op, whose kernel is at that `binary_place`, to the output's
  /// gradient and b, both of the input's shape, and adds the result to the gradient of input i. The output's gradient is
  /// consumed, because the result may overwrite it.
  void accumulate_fused(std::size_t i, const OpInfo& op, int kernel, const Tensor& b);
  /// For y = a b: adds the output's gradient times b to the gradient of a, and times a to that of b, without
  /// temporaries where no other handle sees the sums. Consumes the output's gradient.
  void accumulate_factors();
  /// Adds leftᵀ right, of (…, n, p) and (…, n, q), to the gradient of input i: for weights, which are used many times.
  void accumulate_transposed_product(std::size_t i, const Tensor& left, const Tensor& right);
  /// Returns true if a transposed product of `rows` rows would be deferred and computed together with later ones.
  bool defers(std::size_t i, std::int64_t rows) const;
  /// Returns true if the gradient of input i, a table, may be given by rows: it is a leaf, and no tape records.
  bool takes_rows(std::size_t i) const;
  /// Adds values (n, …) to the rows at `indices` (n), which are in [−size, size), of the gradient of input i.
  void accumulate_rows(std::size_t i, const Tensor& indices, Tensor values);

 private:
  const Tensor& saved(int number) const {
    for (std::uint32_t k = 0; k < entry_.saved_count; ++k)
      if (const Saved& saved = entry_.saved()[k]; saved.number == number) [[likely]]
        return unchanged(saved);
    refuse_unsaved();
  }
  const Tensor& unchanged(const Saved& saved) const {
    const Storage& storage = *saved.tensor.body().storage;
    if (storage.writers.load(std::memory_order_relaxed) != 0 ||
        storage.version.load(std::memory_order_relaxed) != saved.version) [[unlikely]]
      refuse_changed(saved);
    return saved.tensor;
  }
  [[noreturn]] void refuse_unsaved() const;
  [[noreturn]] void refuse_changed(const Saved& saved) const;

  BackwardPass& pass_;
  Entry& entry_;
  std::span<Tensor> outputs_;
  bool recording_;
  std::span<Tensor> collected_;
};

}  // namespace reel::detail
