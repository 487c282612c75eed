#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reel/reel.h>

// A case is a call of one op, and has a line: "softmax f32(31,63):(1,31)+5 axis=1 gradient".

namespace reel_bench {

/// A tensor of a case: its sizes and strides, and its first element's place in the storage, counted in elements.
struct Operand {
  reel::DType dtype;
  reel::Shape shape, strides;
  std::int64_t offset = 0;
};

/// The attributes of a call. An op sets and reads those that it has.
struct Attributes {
  static constexpr std::int64_t unset = -99;
  std::int64_t axis = unset, keepdims = unset, k = unset, below = unset, kernel = unset, stride = unset,
               padding = unset, groups = unset, p = unset, reduction = unset;
  reel::Shape axes = {};
};

struct NamedAttribute {
  const char* name;
  std::int64_t Attributes::*number;
};
inline constexpr NamedAttribute named_attributes[] = {
    {"axis", &Attributes::axis},          {"keepdims", &Attributes::keepdims}, {"k", &Attributes::k},
    {"below", &Attributes::below},        {"kernel", &Attributes::kernel},     {"stride", &Attributes::stride},
    {"padding", &Attributes::padding},    {"groups", &Attributes::groups},     {"p", &Attributes::p},
    {"reduction", &Attributes::reduction}};

struct Case {
  std::string op;
  std::vector<Operand> operands = {};
  Attributes attributes = {};
  bool gradient = false;
};

/// The line of a case. Strides are left out where they are those of a contiguous tensor.
std::string to_string(const Case& one);
/// The case of a line. Throws: std::invalid_argument if it is none.
Case parse_case(const std::string& line);

/// The operands and attributes of a call.
template <class T>
struct Call : Attributes {
  std::vector<T> x;
  const T& operator[](std::size_t i) const { return x[i]; }
};

/// An op and a specification of its calls, words of which the first names dtypes (F: floating, with gradients; f: floating; D and d:
/// f32 and f64 alone; i: i64; b: bool). "[mk]" is an operand of sizes m and k; in brackets a letter is one size in all operands, k that
/// of a kernel, a digit itself, * one to four axes less the others, *@l these axes with size l along the axis (of *@1 an odd size, of
/// *@2 an even one). Behind them stand i or b for another dtype, & for an operand that broadcasts with the one before, and ! for one
/// without strides of 0. Other words are attributes (`draw_attribute` in draw.cpp), "0.3..2", the range of elements, instead of -2..2,
/// "^26", the logarithm of the largest product of all sizes, by default 21, and: "definite", a first operand of positive definite
/// matrices, "sorted0" and "sorted1", an operand with sorted rows, "by1" and "by3", gradients by the first operands alone, "free",
/// results that are not compared: random ones, and those of which more than one is right.
template <class T>
struct Op {
  const char* name;
  const char* specification;
  T (*run)(const Call<T>& call);
};
/// Ops of one kind. Each kind is drawn as often as any other.
template <class T>
struct OpFamily {
  const char* name;
  std::vector<Op<T>> ops;
};

/// All ops.
const std::vector<OpFamily<reel::Tensor>>& op_families();
/// Throws: std::invalid_argument if there is no such op.
const Op<reel::Tensor>& op_named(std::string_view name);
/// True if the word is one of the op's specification.
bool has_word(const Op<reel::Tensor>& op, std::string_view word);
/// The range of the op's floating elements. Integers are in that times 4, or in [0, below) where a case has that attribute.
std::pair<double, double> range_of(const Op<reel::Tensor>& op);
/// Draws a case; equal seeds draw equal ones. `only` is an op or a family; empty: any. Halves are bf16 and f16.
Case draw_case(std::uint64_t seed, std::string_view only, bool halves);

/// A call of one library.
struct Runnable {
  std::function<void()> run;
  /// Runs it and returns its results: what the op returns, then the gradients.
  std::function<std::vector<reel::Tensor>()> results;
};
/// The peer's call on the elements of reel's operands. The gradients are by the operands `sources`, from `seed`. None if the program has
/// no peer, or the peer refuses the call. Throws: std::invalid_argument if the peer has no such op.
std::optional<Runnable> peer_call(const Case& one, const std::vector<reel::Tensor>& operands,
                                  const std::vector<std::size_t>& sources, const reel::Tensor& seed);
/// The peer's name, version and instruction set, and the processor; empty where the program has no peer.
std::string peer_name();
/// Limits the peer to an instruction set. To be called first.
void limit_peer(const std::string& instruction_set);

/// A case's calls.
struct PreparedCase {
  explicit PreparedCase(const Case& given);
  PreparedCase(const PreparedCase&) = delete;
  PreparedCase& operator=(const PreparedCase&) = delete;

  Case one;
  Runnable ours;
  std::optional<Runnable> theirs;
  /// reel's results in f64, from these elements.
  std::function<std::vector<reel::Tensor>()> exact;
};
/// Empty if reel's results agree with the peer's, or those in f64, within the rounding of their dtype, else the difference.
std::string difference(const PreparedCase& prepared);

/// Microseconds of each library and the ratio reel / peer: medians of alternated rounds.
struct Timing {
  double ours, theirs, ratio;
};
Timing time_both(const PreparedCase& prepared);

}  // namespace reel_bench
