#pragma once

#include <optional>
#include <span>

#include <reel/ops/index.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"

namespace reel::detail {

/// Throws: DTypeError unless i32 or i64.
void check_index_dtype(const char* op, const Tensor& index, Location where);

/// Returns true if each index is in [−size, size); if not, `bad` gets one that is not. Checked before `op` runs. On a
/// device, where the answer would have to be waited for, the kernel reports a bad index in the name of `op` later.
bool are_within(const char* op, const Tensor& indices, std::int64_t size, std::int64_t& bad, Location where);

/// Returns true if each index, on the CPU, is within an axis of x, and is there already.
bool accepts_index(const Body& x, const Body& index, int axis);
/// Returns true if each element, of i32 or i64 on the CPU, is in [0, classes) or `ignored`, and is there already.
bool are_classes(const Body& x, std::int64_t classes, std::optional<std::int64_t> ignored = {});

/// Throws: IndexError for an index that a kernel found out of range for an axis of input 0.
[[noreturn]] void fail_range(const Call& call, std::int64_t bad, int axis);

/// Converts a value that is to be written to x: a tensor of x's dtype and device, or a number as a tensor of rank 0.
/// Throws: Error for an undefined tensor; DTypeError unless x's dtype can hold it.
Tensor value_for(const char* op, const Tensor& x, const Arg& value, Location where);

/// Throws: ShapeError unless the index is a vector.
void check_index_vector(const char* op, const Tensor& index, Location where);

/// Throws: ShapeError unless `index` has x's rank and, on axes other than `axis`, sizes up to x's.
void check_index_shape(const char* op, const Tensor& x, const Tensor& index, int axis, Location where);

/// Throws: IndexError unless each index is within `axis` of x; on a device the kernel reports it later.
void check_index_range(const char* op, const Tensor& x, const Tensor& index, int axis, Location where);

/// Throws: DTypeError unless the mask is bool; DeviceError.
void check_mask(const char* op, const Tensor& x, const Tensor& mask, Location where);

/// Combines an index for each of the leading axes of x, which broadcast together, into one for rows of x with these
/// axes merged. A single index is returned as it is.
/// Throws: Error for an undefined tensor; IndexError for an index out of range, and for no indices or more than axes;
/// DTypeError unless i32 or i64; ShapeError unless they broadcast; DeviceError.
Tensor merged_index(const char* op, const Tensor& x, std::span<const Tensor> indices, Location where);

/// The public functions of these names, with errors that tell of `name`: their in-place forms call them, too.
Tensor masked_fill(const char* name, const Arg& x, const Arg& mask, const Arg& value);
Tensor index_put(const char* name, const Arg& x, std::span<const Tensor> indices, const Arg& values,
                 IndexPutOptions options);

}  // namespace reel::detail
