#pragma once

#include <cstdint>
#include <span>

#include <reel/device.h>

#include <reel/detail/view.h>

namespace reel::detail {

enum class Unary : std::uint8_t { neg, exp, log, sqrt, square, tanh, sigmoid, relu, count };
enum class Binary : std::uint8_t {
  add,
  sub,
  mul,
  div,
  pow,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  tanh_gradient,
  sigmoid_gradient,
  relu_gradient,
  count
};
enum class Reduction : std::uint8_t { sum, max, count };

/// The numbers that a random kernel draws from: see Generator.
struct RandomCall {
  std::uint64_t seed;
  std::uint64_t call;
};

/// The kernels of one device: a typed slot each. Outputs come first and are allocated; inputs may be strided, and
/// broadcast where it says so.
struct KernelTable {
  using UnaryKernel = void (*)(const View& out, const View& x);
  using BinaryKernel = void (*)(const View& out, const View& a, const View& b);

  /// Converts dtypes where they differ; broadcasts.
  void (*copy)(const View& out, const View& x);
  void (*fill)(const View& out, double number, std::int64_t integer);
  /// Parts of out's dtype, one behind the other along an axis; one that lacks the axis has size 1 there.
  void (*concat)(const View& out, std::span<const View* const> parts, int axis);
  /// start + i step: of the integers if `out` has an integer dtype, else of the numbers.
  void (*arange)(const View& out, double start, double step, std::int64_t integer_start, std::int64_t integer_step);
  /// Numbers evenly apart; the first and last are exact.
  void (*linspace)(const View& out, double first, double last);
  /// 1 at each index of the last axis, else 0. As gather, but negative indices are out of range.
  bool (*one_hot)(const View& out, const View& indices, std::int64_t& bad);
  /// x where low <= column − row <= high in the last two axes, else 0.
  void (*band)(const View& out, const View& x, std::int64_t low, std::int64_t high);
  UnaryKernel unary[static_cast<int>(Unary::count)];
  /// Broadcast. `out` may be `a`.
  BinaryKernel binary[static_cast<int>(Binary::count)];
  /// sum += a b, all contiguous, of one shape, and f32 or f64.
  void (*multiply_add)(const View& sum, const View& a, const View& b);
  /// Broadcast; `condition` is bool.
  void (*where)(const View& out, const View& condition, const View& a, const View& b);
  /// `out` has size 1 on each reduced axis.
  UnaryKernel reduce[static_cast<int>(Reduction::count)];
  /// Of (…, M, K) and (…, K, N); the leading axes broadcast.
  void (*matmul)(const View& out, const View& a, const View& b);
  /// Whether each index lies in [−size, size); if not, one that does not.
  bool (*indices_within)(const View& indices, std::int64_t size, std::int64_t& bad);
  /// y[…, j, …] = x[…, index[…, j, …], …] along `axis`, negative indices from the end. Returns false, having written
  /// nothing, if an index is out of range, and then which.
  bool (*gather)(const View& out, const View& x, const View& index, int axis, std::int64_t& bad);
  /// Adds into `out` instead.
  void (*scatter_add)(const View& out, const View& updates, const View& index, int axis);
  /// Rows of a (V, D) table. As gather.
  bool (*embedding)(const View& out, const View& table, const View& indices, std::int64_t& bad);
  /// Adds into `table_gradient`.
  void (*embedding_gradient)(const View& table_gradient, const View& gradient, const View& indices);
  /// Over the last axis.
  UnaryKernel softmax;
  UnaryKernel log_softmax;
  /// From the gradient and the result.
  BinaryKernel softmax_gradient;
  BinaryKernel log_softmax_gradient;
  /// One loss per row of (N, C); 0 where the target is `ignored`. As gather.
  bool (*cross_entropy)(const View& losses, const View& logits, const View& targets, std::int64_t ignored,
                        std::int64_t& bad);
  /// row gradient · (softmax − one-hot), 0 where ignored; `gradient` broadcasts over rows.
  void (*cross_entropy_gradient)(const View& out, const View& gradient, const View& logits, const View& targets,
                                 std::int64_t ignored);
  /// [0, 1).
  void (*uniform)(const View& out, RandomCall call);
  void (*normal)(const View& out, RandomCall call);
  void (*gumbel)(const View& out, RandomCall call);
  /// Of bool. `p` has out's shape, or one element; it is contiguous. As gather, for a probability outside [0, 1].
  bool (*bernoulli)(const View& out, const View& p, RandomCall call, double& bad);
  /// low + the high words of a 128-bit number times `count`.
  void (*randint)(const View& out, std::int64_t low, std::uint64_t count, RandomCall call);
  /// 0 … n − 1, sorted by 64-bit numbers, and where these are equal by themselves.
  void (*randperm)(const View& out, RandomCall call);
  /// x / (1 − p) where the element's number is at least p, else 0.
  void (*dropout)(const View& out, const View& x, double probability, RandomCall call);
};

/// The kernels of a device. Throws: DeviceError where it has none.
const KernelTable& kernels(Device device);

/// Called once, before any kernel runs.
void fill_kernel_tables();

}  // namespace reel::detail
