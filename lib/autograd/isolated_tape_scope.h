#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/context.h"
#include "../record/tape_list.h"

namespace reel::detail {

/// While it lives, this thread uses the inner list in place of its own: for functions that run as one op, and whose own
/// ops the outer tape does not record.
class IsolatedTapeScope : Immovable {
 public:
  enum class Purpose : std::uint8_t {
    /// Nothing is recorded, but tensors that the function uses from outside are adopted by the list.
    collect_uses,
    /// Ops that depend on the list's leaves are recorded.
    record,
    /// Nothing is recorded, except by tapes that the function opens.
    compute,
  };
  IsolatedTapeScope(Context& context, Purpose purpose);
  ~IsolatedTapeScope();

  TapeList& list() const { return list_; }
  /// Returns true if the tensor was made since this scope began, by ops or by hand, and not by stop_gradient.
  bool has_made(const Tensor& tensor) const;
  /// Detaches the tensor from the tape but keeps it marked as created in this scope.
  void free(Body& body) const {
    if (is_untracked(body)) return;
    body.epoch.store(0, std::memory_order_relaxed);
    body.slot = scope_id_;
  }

 private:
  Context& context_;
  TapeList& outer_;
  TapeList& list_;
  Location caller_before_;
  std::uint32_t flags_before_, scope_id_before_, scope_id_;
};

/// The inputs of an isolated function: other handles of the same elements, which no tape tracks.
class Aliases {
 public:
  explicit Aliases(std::span<const Tensor* const> inputs);
  std::span<const Tensor> tensors() const { return tensors_; }
  /// The index of the input that the tensor is an alias of; -1 if there is none.
  int index_of(const Tensor& tensor) const;
  /// The index of the first input that was overwritten since; -1 if there is none.
  int overwritten() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::uint32_t> versions_;
};

/// Makes the results of an isolated function the outputs of one op: tensors without other handles, which no list
/// tracks, located at the caller's line. Throws: Error for an undefined result; TapeError for one that is tracked
/// outside and is no input.
void make_outputs(const char* op, const IsolatedTapeScope& scope, const Aliases& inputs, std::span<Tensor> results,
                  Location where);

/// Where nothing records: replaces results that are inputs, are tracked, or were returned before by untracked aliases.
/// Throws: Error for an undefined result.
void replace_aliased_results(const char* op, std::span<const Tensor> inputs, std::span<Tensor> results, Location where);

/// Throws: Error if result k of an op's function is undefined.
void check_result(const char* op, const Tensor& result, std::size_t k, Location where);

/// Returns a handle that shares the elements, shape and call site of `tensor`.
Tensor alias_of(const Tensor& tensor);

}  // namespace reel::detail
