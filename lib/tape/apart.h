#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/context.h"
#include "tape_list.h"

namespace reel::detail {

/// While it lives, this thread uses the inner list in place of its own: for functions that run apart, as one op, and
/// whose own ops nobody outside is to see.
class Apart {
 public:
  enum class Purpose : std::uint8_t {
    /// Nothing is recorded, but what the function uses from outside is adopted by the list.
    note,
    /// What depends on the list's leaves is recorded.
    record,
    /// Nothing is recorded, unless by tapes that the function opens.
    compute,
  };
  Apart(Context& context, Purpose purpose);
  ~Apart();
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  TapeList& list() const { return list_; }
  /// Whether the tensor was made since this began, by ops or by hand, and not by stop_gradient.
  bool has_made(const Tensor& tensor) const;
  /// Lets go of the tensor's slot, if it has one, and goes on knowing that it was made here.
  void free(Body& body) const {
    if (is_untracked(body)) return;
    body.epoch.store(0, std::memory_order_relaxed);
    body.slot = birth_;
  }

 private:
  Context& context_;
  TapeList& outer_;
  TapeList& list_;
  Location caller_before_;
  std::uint32_t flags_before_, birth_before_, birth_;
};

/// The inputs of a function that runs apart: other handles of the same elements, which nobody tracks.
class Aliases {
 public:
  explicit Aliases(std::span<const Tensor* const> inputs);
  std::span<const Tensor> tensors() const { return tensors_; }
  /// The number of the input that the tensor is an alias of; -1: of none.
  int number_of(const Tensor& tensor) const;
  /// The first input that was overwritten since; -1: none.
  int overwritten() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::uint32_t> versions_;
};

/// Makes the results of a function that ran apart the outputs of one op: tensors that nobody else has, which no list
/// tracks, made at the caller's line. Throws: Error for an undefined one; TapeError for one that is tracked outside.
void settle_results(const char* op, const Apart& apart, const Aliases& inputs, std::span<Tensor> results,
                    Location where);

/// Where nothing records: gives results that are inputs, are tracked, or were returned before handles of their own, which
/// nobody tracks. Throws: Error for an undefined one.
void settle_unrecorded(const char* op, std::span<const Tensor> inputs, std::span<Tensor> results, Location where);

/// Throws: Error if result k of an op's function is undefined.
void check_result(const char* op, const Tensor& result, std::size_t k, Location where);

/// The same shape and elements under a handle of its own, made at the same place.
Tensor alias_of(const Tensor& tensor);

}  // namespace reel::detail
