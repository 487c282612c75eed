#pragma once

#include "../core/invoke.h"
#include "../core/op_error.h"

namespace reel::detail {

/// Throws: DTypeError unless i32 or i64.
void check_index_dtype(const char* op, const Tensor& index, Location where);

/// Throws: IndexError for an index that a kernel found out of range for an axis of input 0.
[[noreturn]] void fail_range(const Call& call, std::int64_t bad, int axis);

/// A value to be put into x: a tensor of its dtype and device, or a plain number as one of rank 0.
/// Throws: Error for an undefined tensor; DTypeError unless x's dtype can hold it.
Tensor value_for(const char* op, const Tensor& x, const Arg& value, Location where);

}  // namespace reel::detail
