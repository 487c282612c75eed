#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <reel/tensor.h>

namespace reel::detail {

/// The shape and dtype of a tensor: "(2, 3) f32".
std::string describe(const Tensor& tensor);

/// The sentence of an error of an op: "matmul: …". Notifies this thread's listener of it.
std::string refusal(const char* op, Location where, std::string_view sentence);

/// The call site to report for an op called at `where`.
Location call_site(Location where);

/// Throws `E` with the op's name, the sentence, and the call site.
template <class E, class... T>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const char* op, Location where, fmt::format_string<T...> sentence,
                                                 T&&... values) {
  Location site = call_site(where);
  throw E(refusal(op, site, fmt::format(sentence, std::forward<T>(values)...)), site);
}

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
