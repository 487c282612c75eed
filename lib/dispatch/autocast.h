#pragma once

#include <unordered_map>

#include "../core/context.h"
#include "invoke.h"

// How ops find their dtypes within an autocast scope: at the dispatcher or, for ops that inspect dtypes earlier, at
// their beginning.

namespace reel::detail {

/// Casts a tensor to another dtype by the op `to`, in whose file it is defined: ops are above the dispatcher.
Tensor converted(const Tensor& tensor, DType dtype, Location where);

/// The state of an autocast scope: its dtype, and its cache of casts of parameters.
class Casts {
 public:
  explicit Casts(DType low) : low_(low) {}
  /// The dtype in which ops of low precision run.
  DType low() const { return low_; }
  /// Casts a tensor to another dtype. The cast of a parameter is cached until the parameter is overwritten or the tape
  /// that recorded the cast is cleared.
  Tensor cast(Context& context, const Tensor& tensor, DType dtype, Location where);

 private:
  struct Made {
    Tensor parameter, cast;
    std::uint32_t version, scope_id;
    std::uint64_t epoch;
  };
  bool is_valid(const Context& context, const Made& made, DType dtype) const;

  DType low_;
  std::unordered_map<const Body*, Made> made_;
};

/// Returns true if the inputs of a call have the dtypes in which its op runs within the open scope.
bool has_autocast_dtypes(const Context& context, const Call& call);
/// Casts the inputs of a call and invokes the op on them.
void invoke_autocast(Context& context, Call& call);

/// Returns true if an autocast scope is open.
inline bool is_autocasting() { return context().has(Context::autocasting); }

/// The dtype in which an op of a precision runs within the open scope, given the dtype of its operands.
DType autocast_dtype(Precision precision, DType dtype);

/// An operand of an op of a precision: cast within an autocast scope, elsewhere the caller's tensor.
class AutocastArg : Immovable {
 public:
  AutocastArg(Precision precision, const Arg& arg) : arg_(arg) {
    if (is_autocasting()) [[unlikely]]
      cast(precision);
  }
  operator const Arg&() const { return arg_; }
  const Arg& operator*() const { return arg_; }
  const Arg* operator->() const { return &arg_; }

 private:
  void cast(Precision precision);

  Tensor made_;
  Arg arg_;
};

/// A tensor as an operand of an op of a precision: cast within an autocast scope, elsewhere as it is. May be undefined.
Tensor autocast_operand(Precision precision, const Tensor& tensor, Location where);

}  // namespace reel::detail
