#pragma once

#include <unordered_map>

#include "context.h"
#include "invoke.h"

// How ops find the dtypes that suit them within an autocast scope: at the door, or, where an op looks at dtypes before,
// at its beginning.

namespace reel::detail {

/// What an autocast scope has: its dtype, and the casts of parameters that it has made.
class Casts {
 public:
  explicit Casts(DType low) : low_(low) {}
  /// What ops of low precision run in.
  DType low() const { return low_; }
  /// A tensor in another dtype. Of a parameter it is the same one each time, until the parameter is overwritten or what
  /// recorded the cast has gone.
  Tensor cast(Context& context, const Tensor& tensor, DType dtype, Location where);

 private:
  struct Made {
    Tensor parameter, cast;
    std::uint32_t version, birth;
    std::uint64_t epoch;
  };
  bool is_valid(const Context& context, const Made& made, DType dtype) const;

  DType low_;
  std::unordered_map<const Body*, Made> made_;
};

/// Whether the inputs of a call have the dtypes that suit its op within the open scope.
bool is_suited(const Context& context, const Call& call);
/// Casts them, and invokes the op on what comes of it.
void invoke_suited(Context& context, Call& call);

/// Whether an autocast scope is open.
inline bool is_autocasting() { return context().has(Context::autocasting); }

/// The dtype that suits an op of some precision within the open scope, in place of one that its operands have.
DType suited(Precision precision, DType dtype);

/// An operand as an op of some precision takes it: cast within an autocast scope, elsewhere the caller's own.
class Suited {
 public:
  Suited(Precision precision, const Arg& arg) : arg_(arg) {
    if (is_autocasting()) [[unlikely]]
      cast(precision);
  }
  Suited(const Suited&) = delete;
  Suited& operator=(const Suited&) = delete;
  operator const Arg&() const { return arg_; }
  const Arg& operator*() const { return arg_; }
  const Arg* operator->() const { return &arg_; }

 private:
  void cast(Precision precision);

  Tensor made_;
  Arg arg_;
};

/// The same of a tensor, which may be undefined.
Tensor suited(Precision precision, const Tensor& tensor, Location where);

}  // namespace reel::detail
