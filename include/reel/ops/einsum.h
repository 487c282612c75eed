#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include <reel/tensor.h>

namespace reel {

/// Sum of products by index: `einsum("ij,jk->ik", {a, b})` is y_ik = Σ_j a_ij b_jk.
///
/// Each operand has a term, separated by commas: a letter (A–Z, a–z) an axis. An index that the output lacks is summed
/// over. A letter twice in a term takes a diagonal. `...` stands for the axes without letters, anywhere in a term; they
/// broadcast, aligned at the right, and the output must name them. Without `->` the output is `...`, then the letters
/// that occur once, capitals first, in alphabetical order. An axis of size 1 broadcasts against those of that
/// letter in other operands. Spaces are ignored.
///
/// The operands are combined in a common dtype, which is the result's. They are contracted two by two, first the pair
/// whose product is smallest, each pair that shares a summed index by one matrix product on reshaped operands; bf16 and
/// f16 are rounded after each. Where nothing is multiplied or summed, the result is a view, as of `i->i`.
/// Throws: ShapeError for a malformed equation, or shapes that do not fit it; DeviceError for operands on different
/// devices.
/// Source: NumPy's einsum.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands, Location where = Location::here());
/// Sum of products by index: `einsum("ij,jk->ik", {a, b})` is y_ik = Σ_j a_ij b_jk.
///
/// Each operand has a term, separated by commas: a letter (A–Z, a–z) an axis. An index that the output lacks is summed
/// over. A letter twice in a term takes a diagonal. `...` stands for the axes without letters, anywhere in a term; they
/// broadcast, aligned at the right, and the output must name them. Without `->` the output is `...`, then the letters
/// that occur once, capitals first, in alphabetical order. An axis of size 1 broadcasts against those of that
/// letter in other operands. Spaces are ignored.
///
/// The operands are combined in a common dtype, which is the result's. They are contracted two by two, first the pair
/// whose product is smallest, each pair that shares a summed index by one matrix product on reshaped operands; bf16 and
/// f16 are rounded after each. Where nothing is multiplied or summed, the result is a view, as of `i->i`.
/// Throws: ShapeError for a malformed equation, or shapes that do not fit it; DeviceError for operands on different
/// devices.
/// Source: NumPy's einsum.
inline Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands,
                     Location where = Location::here()) {
  return einsum(equation, std::span(operands.begin(), operands.size()), where);
}

}  // namespace reel
