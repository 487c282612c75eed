#pragma once

#include <span>

#include <reel/tensor.h>

#include "entry.h"

namespace reel::detail {

enum class Binary : std::uint8_t;
class Walk;

/// What an op's gradient function sees: the recorded call, the gradients of its outputs, and where to put those of its
/// inputs. It is written with public ops, so that what it does can be differentiated in turn.
class Gradient {
 public:
  /// `collected`: where the gradients of the inputs are put, one each, instead of being added to the walk's sums.
  Gradient(Walk& walk, Entry& entry, std::span<Tensor> outputs, bool recording, std::span<Tensor> collected = {})
      : walk_(walk), entry_(entry), outputs_(outputs), recording_(recording), collected_(collected) {}

  const OpInfo* op() const { return entry_.op; }
  /// Whether anybody asks for the gradient of input i.
  bool wants(std::size_t i) const;
  std::size_t input_count() const { return entry_.input_count; }
  std::size_t output_count() const { return entry_.output_count; }
  /// Whether a gradient flowed back to output i.
  bool has_output(std::size_t i) const { return outputs_[i].defined(); }
  /// The gradient of output i. Zeros where nothing flowed back to it.
  const Tensor& output(std::size_t i = 0);
  /// The same, with elements of its own, for functions that may keep or change it.
  const Tensor& own_output(std::size_t i);
  /// The same, to be changed in place; it is not there afterwards.
  Tensor take_output(std::size_t i = 0);
  /// The same as it is, to another walk; undefined where nothing flowed back to it.
  Tensor hand_over(std::size_t i);
  /// A saved value. Throws: TapeError if it was overwritten since.
  const Tensor& saved_input(int i) const { return saved(i); }
  const Tensor& saved_output(int i = 0) const { return saved(-1 - i); }
  /// Value k of an op that says itself what it saves. Throws: as saved_input.
  const Tensor& saved_value(std::size_t k) const { return unchanged(entry_.saved()[k]); }
  /// What the gradient of a tracked input must look like.
  const SlotForm& input_form(std::size_t i) const;
  const SlotForm& output_form(std::size_t i) const;
  /// Shape of an input; of an untracked one only if the op keeps input shapes.
  Shape input_shape(std::size_t i) const;
  DType input_dtype(std::size_t i) const;
  template <Attributes T>
  const T& attributes() const {
    return *reinterpret_cast<const T*>(entry_.attributes());
  }
  std::span<const std::byte> attribute_bytes() const { return {entry_.attributes(), entry_.attribute_bytes}; }
  /// Whether an outer tape records this gradient: then it must be composed of differentiable ops.
  bool recording() const { return recording_; }
  Location where() const { return entry_.where(); }

  /// Adds to the gradient of input i. Axes along which the input was broadcast are summed here.
  void give(std::size_t i, Tensor gradient);
  /// For an op whose gradient is a walk of its own: sets the inner walk up as the outer one is, and says whether sums are
  /// to be passed through it, so that they are formed in the order in which they would be without it.
  bool hand_totals_to(Walk& inner) const;
  /// Moves what the walk has summed up for input i so far to a slot of the inner one, and with more in it back.
  void hand_total(std::size_t i, Walk& inner, std::uint32_t slot);
  void take_total_back(std::size_t i, Walk& inner, std::uint32_t slot);
  /// For an op whose output is a part of input i: adds the output's gradient to that part of what has been summed up, by an
  /// op in place with the same attributes on the two. False if there is nothing yet, or it cannot be changed.
  bool add_to_part(std::size_t i, const OpInfo& op);
  /// Adds a b to it, without a temporary where nobody would notice.
  void give_product(std::size_t i, const Tensor& a, const Tensor& b);
  /// For an op with one output: adds that one's gradient. Where it is the last use, it is not there afterwards.
  void pass_on(std::size_t i, bool last);
  /// For an op with one output: adds what an elementwise op, with that kernel, makes of that one's gradient and b, both of
  /// the input's shape. The output's gradient is not there afterwards: the result may be put in its place.
  void give_worked_out(std::size_t i, const OpInfo& op, Binary kernel, const Tensor& b);
  /// For y = a b: adds the output's gradient times b to that of a, and times a to that of b, without temporaries where
  /// nobody would notice. It is not there afterwards.
  void give_factors();
  /// Adds leftᵀ right, of (…, n, p) and (…, n, q), to it: for the weights of products, which are used many times.
  void give_transposed_product(std::size_t i, const Tensor& left, const Tensor& right);
  /// Whether such a product of n rows would be worked out later, together with others.
  bool defers(std::size_t i, std::int64_t n) const;
  /// Whether the gradient of input i, a table, may be given by its rows: it is a leaf, and nothing records.
  bool takes_rows(std::size_t i) const;
  /// Adds values (n, …) to the rows at `indices` (n), which lie in [−size, size), of that gradient.
  void give_rows(std::size_t i, const Tensor& indices, Tensor values);

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

  Walk& walk_;
  Entry& entry_;
  std::span<Tensor> outputs_;
  bool recording_;
  std::span<Tensor> collected_;
};

}  // namespace reel::detail
