#pragma once

#include <fmt/format.h>

#include <reel/tensor.h>

#include "context.h"

namespace reel::detail {

/// The shape and dtype of a tensor: "(2, 3) f32".
std::string describe(const Tensor& tensor);

/// Where the program is, beside its line: the running module and the notes, as in "in layers.1.attention with epoch = 3".
/// Empty outside of modules, and in a module that no other contains, without notes.
std::string whereabouts(const Context& context);

/// The sentence of an error of an op: "matmul: …". Notifies this thread's listener of it.
std::string refusal(const char* op, Location where, std::string_view sentence);

/// Throws `E` with the op's name, the sentence, and the call site.
template <class E, class... T>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const char* op, Location where, fmt::format_string<T...> sentence,
                                                 T&&... values) {
  Location site = context().call_site(where);
  throw E(refusal(op, site, fmt::format(sentence, std::forward<T>(values)...)), site);
}

/// While it lives, errors of ops name the composed function `op` in place of the op that throws, and its caller, unless
/// an outer scope names one.
class OpScope {
 public:
  OpScope(Location where, const char* op) : caller_(where, op), named_(!context().function) {
    if (named_) context().function = op;
  }
  ~OpScope() {
    if (named_) context().function = nullptr;
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  CallerScope caller_;
  bool named_;
};

/// The tensor of an operand. Throws: Error if it is undefined; DTypeError if it is a plain number.
const Tensor& tensor_of(const char* op, const Arg& arg);

/// Throws: DeviceError unless both tensors are on one device.
void check_same_device(const char* op, const Tensor& a, const Tensor& b, Location where);

/// Throws: DTypeError unless x is floating.
void check_floating(const char* op, const Tensor& x, Location where);

/// Returns an axis in [0, rank); negative ones count from the end. Throws: ShapeError.
int check_axis(const char* op, std::int64_t axis, const Tensor& x, Location where);

/// Returns several axes as a set of bits. Throws: ShapeError if one does not exist or is named twice.
unsigned check_axes(const char* op, const Shape& axes, const Tensor& x, Location where);

}  // namespace reel::detail
