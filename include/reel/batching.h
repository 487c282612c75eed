#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <reel/location.h>

namespace reel {

class Indexed;
class Tensor;

/// How a line's ops ran within `batch_map`.
struct BatchedLine {
  std::string op;                  ///< the name of the op
  Location where;                  ///< the line that called it
  std::int64_t calls = 0;          ///< how often it was called
  std::int64_t groups = 0;         ///< the number of times that several of the calls ran as one
  std::int64_t grouped = 0;        ///< the number of calls that ran in groups
  std::int64_t alone_by_op = 0;    ///< calls that ran alone because the op, with these operands, cannot be joined
  std::int64_t alone_large = 0;    ///< calls that ran alone because they are large enough to be fast on their own
  std::int64_t alone_scope = 0;    ///< calls that ran alone within an inner tape or an isolated function
  std::int64_t alone_waited = 0;   ///< calls that ran alone because there was no equal one, or no other example
  std::int64_t alone_cheaper = 0;  ///< calls that ran alone because groups of them were expected to take longer
  double seconds = 0;              ///< the time of the calls without their gradients; of a group's, their share
};

/// Counts of grouped and single ops of a `batch_map`, by line of the caller.
struct BatchReport {
  std::vector<BatchedLine> lines;  ///< in the order of their first call

  /// A table: op, line, number of calls, mean size of a group, milliseconds, and why calls ran alone.
  std::string to_string() const;
};

/// Options of `batch_map`.
struct BatchOptions {
  /// The most examples that wait at a time, at least 1: these start together, and the next ones when all have ended. More
  /// of them make larger groups, but need more of the caches for their stacks.
  std::int64_t in_flight = 64;
  /// Run the examples one after the other on the caller's stack, as a debugger likes it. Gradients differ by rounding only.
  bool immediate = false;
  /// Also run every op that was joined with others alone, and throw if its result or its gradient differs by more than
  /// rounding. Many times slower.
  bool verify = false;
  /// Receives the counts of ops that ran in groups and of those that did not. Ops of an example's own batch_map are counted
  /// in both reports. Null: nothing is counted.
  BatchReport* report = nullptr;
  /// Bytes of each example's stack, at least 64 KiB; only what is used takes memory. Recursion that needs more throws at
  /// the next op; between ops it ends the process, after a sentence on stderr unless the program handles SIGSEGV.
  std::size_t stack_bytes = std::size_t{1} << 20;
};

namespace detail {

/// A reference to a function of an index.
struct IndexedFunction {
  void* function;
  void (*call)(void* function, std::size_t index);
};
void run_batch(std::size_t count, IndexedFunction function, const BatchOptions& options, Location where);
void run_both(IndexedFunction functions);

template <class F>
IndexedFunction indexed(F& function) {
  return {&function, [](void* to, std::size_t index) { (*static_cast<F*>(to))(index); }};
}

/// In what the result of a function is kept: by value, a part of a tensor as a tensor.
template <class Result>
using KeptResult =
    std::conditional_t<std::is_same_v<std::remove_cvref_t<Result>, Indexed>, Tensor, std::decay_t<Result>>;

/// Calls a function and keeps its result.
template <class Result, class F, class... Arguments>
void keep(std::optional<Result>& result, F&& function, Arguments&&... arguments) {
  static_assert(std::is_move_constructible_v<Result>,
                "reel: a function that batch_map or both calls returns a value that can be moved, since it is kept");
  result.emplace(function(std::forward<Arguments>(arguments)...));
}
template <class F>
void keep(std::optional<std::monostate>& result, F&& function) {
  function();
  result.emplace();
}

}  // namespace detail

/// Calls a function with every example, and runs equal ops of one or several examples as one: code written for one example
/// runs at nearly the speed of code for a batch. An op returns a tensor whose elements are pending. They are computed when
/// the program reads them, for example by `item` or printing, or overwrites a tensor: the example, which has a stack of its
/// own, is suspended until all others are suspended or have ended. Control flow may depend on the values. A call without
/// pending operands runs at once where a group of it would cost more than it saves: see `set_group_cost`. Returns the
/// results in the order of the examples, with all elements computed.
///
/// Results, gradients and errors are those of ops that run when they are called: later overwrites, `watch` and scopes do
/// not affect them, shapes are checked by the call, and so are index values. A MemoryError is the exception: the example's
/// next op or read throws it, with the line of the op that ran out of memory. While a listener such as `debug::Profile` is
/// open, an example is suspended at every op. Read a result's elements before another thread uses it.
///
/// On the CPU an example's results in f32 and f64 are equal to the bit to those that it has alone, but for products by a
/// transposed matrix; `set_batch_invariant(true)` makes all of them so. Gradients are sums over examples, which may differ
/// by rounding.
///
/// Each example draws its random numbers from a stream of its own, which does not depend on `in_flight`. Scopes that an
/// example opens hold for it alone, and end with it. The exception of the first example that throws is thrown when all
/// have ended: those before it go on, and the later ones are ended by an exception at their ops. An op that is called by a
/// destructor, other than while an exception unwinds the example, ends the process then. If the exception is one of
/// reel's, it names the example.
///
/// The results of an op that ran for several examples share one block of memory, which lives as long as any of them: keep
/// a copy of a small one. One that is overwritten in place is moved to memory of its own, with its views. The gradient of
/// one by a tensor of another example is zeros, not an error.
///
/// A view that several examples take of one tensor which a tape tracks, such as the transpose of a parameter, is one
/// tensor, so that products by it are joined: an example may differentiate by it, but a hook or a trace of it, and its
/// gradient after the batch, are a TapeError.
/// Throws: what the function throws; Error for options out of range; MemoryError.
template <std::ranges::random_access_range Examples, class Function>
auto batch_map(Examples&& examples, Function&& function, const BatchOptions& options = {},
               Location where = Location::here()) {
  static_assert(std::is_invocable_v<Function&, std::ranges::range_reference_t<Examples>>,
                "reel: the function of batch_map takes one example of the range");
  using Result = detail::KeptResult<std::invoke_result_t<Function&, std::ranges::range_reference_t<Examples>>>;
  auto count = static_cast<std::size_t>(std::ranges::size(examples));
  auto example = [&](std::size_t i) -> decltype(auto) {
    return std::ranges::begin(examples)[static_cast<std::ranges::range_difference_t<Examples>>(i)];
  };
  if constexpr (std::is_void_v<Result>) {
    auto run = [&](std::size_t i) { function(example(i)); };
    detail::run_batch(count, detail::indexed(run), options, where);
  } else {
    std::vector<std::optional<Result>> made(count);
    auto run = [&](std::size_t i) { detail::keep(made[i], function, example(i)); };
    detail::run_batch(count, detail::indexed(run), options, where);
    std::vector<Result> results;
    results.reserve(count);
    for (std::optional<Result>& one : made) results.push_back(std::move(*one));
    return results;
  }
}

/// Sets what a group of calls is expected to cost, relative to what was measured, for the batches that begin from now on in
/// the whole process: 1 at first. A call runs at once, alone, where its group is expected to cost more than it saves by
/// reading weights once. With a smaller factor more calls are joined; with 0, for tests and measurements, all that can be.
/// A checkpoint around a batch must run again with the factor with which it has run.
/// Throws: Error for a factor outside [0, 10⁶].
void set_group_cost(double factor, Location where = Location::here());
/// The factor of set_group_cost.
double group_cost();

/// Calls two functions within an example of `batch_map`, of which the second goes on while the first waits for elements: for
/// siblings in a tree whose control flow reads values. Elsewhere calls one after the other. The second draws its random numbers from a stream of its own. Returns a pair
/// of the results, where std::monostate stands for none; nothing if neither returns anything.
/// Throws: what the functions throw; MemoryError.
template <class First, class Second>
auto both(First&& first, Second&& second) {
  static_assert(std::is_invocable_v<First&> && std::is_invocable_v<Second&>,
                "reel: the functions of both take no arguments");
  using A = detail::KeptResult<std::invoke_result_t<First&>>;
  using B = detail::KeptResult<std::invoke_result_t<Second&>>;
  constexpr bool none = std::is_void_v<A> && std::is_void_v<B>;
  std::optional<std::conditional_t<std::is_void_v<A>, std::monostate, A>> a;
  std::optional<std::conditional_t<std::is_void_v<B>, std::monostate, B>> b;
  auto run = [&](std::size_t i) { i == 0 ? detail::keep(a, first) : detail::keep(b, second); };
  detail::run_both(detail::indexed(run));
  if constexpr (!none) return std::pair(std::move(*a), std::move(*b));
}

}  // namespace reel
