#pragma once

#include <span>

#include <reel/ops/index.h>

#include "../core/invoke.h"
#include "../core/op_error.h"

namespace reel::detail {

/// Throws: DTypeError unless i32 or i64.
void check_index_dtype(const char* op, const Tensor& index, Location where);

/// Whether each index lies in [−size, size); if not, one that does not. Looked at before `op` runs: a device, on which the
/// answer would have to be waited for, reports one in the name of `op` when it finds it.
bool are_within(const char* op, const Tensor& indices, std::int64_t size, std::int64_t& bad, Location where);

/// Throws: IndexError for an index that a kernel found out of range for an axis of input 0.
[[noreturn]] void fail_range(const Call& call, std::int64_t bad, int axis);

/// A value to be put into x: a tensor of its dtype and device, or a plain number as one of rank 0.
/// Throws: Error for an undefined tensor; DTypeError unless x's dtype can hold it.
Tensor value_for(const char* op, const Tensor& x, const Arg& value, Location where);

/// The public functions of these names, with errors in the name of `op`: they serve their in-place forms too.
Tensor masked_fill(const char* op, const Arg& x, const Arg& mask, const Arg& value);
Tensor index_put(const char* op, const Arg& x, std::span<const Tensor> indices, const Arg& values,
                 IndexPutOptions options);

}  // namespace reel::detail
