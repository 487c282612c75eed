#pragma once

#include <cstdint>
#include <span>

#include <reel/device.h>

#include <reel/detail/view.h>

#include "element_summary.h"
#include "elementwise.h"

namespace reel::detail {

enum class Reduction : std::uint8_t { sum, prod, max, min, argmax, argmin, logsumexp, count };

/// The random stream that a random kernel draws from: see Generator.
struct RandomCall {
  std::uint64_t seed;
  std::uint64_t call;
};

struct ParameterVersion;

// Families with a table of their own in kernels/; a file includes the header of a family only if it uses that.
struct ActivationKernels;
struct AttentionKernels;
struct ConvolutionKernels;
struct EmbeddingKernels;
struct LinearAlgebraKernels;
struct LossKernels;
struct NormaliseKernels;
struct PoolingKernels;
struct RecurrentKernels;
struct ResampleKernels;
struct SamplingKernels;
struct SparseKernels;

/// The kernels of one device, one typed slot each. Outputs come first and are allocated: those of elementwise kernels may
/// have any strides, others are row-major. Inputs may be strided, and broadcast if the slot says so.
struct KernelTable {
  using UnaryKernel = void (*)(const View& out, const View& x);
  using BinaryKernel = void (*)(const View& out, const View& a, const View& b);

  /// Copies x, converting the dtype if it differs; broadcasts.
  void (*copy)(const View& out, const View& x);
  void (*fill)(const View& out, double number, std::int64_t integer);
  /// Concatenates parts of out's dtype along an axis; a part that lacks the axis has size 1 there.
  void (*concat)(const View& out, std::span<const View* const> parts, int axis);
  /// start + i step: of the integer arguments if `out` has an integer dtype, else of the floating ones.
  void (*arange)(const View& out, double start, double step, std::int64_t integer_start, std::int64_t integer_step);
  /// Evenly spaced numbers; the first and last are exact.
  void (*linspace)(const View& out, double first, double last);
  /// 1 at each index of the last axis, else 0. Negative indices are out of range: returns false then, with one in
  /// `bad`.
  bool (*one_hot)(const View& out, const View& indices, std::int64_t& bad);
  /// x where low <= column − row <= high in the last two axes, else 0.
  void (*band)(const View& out, const View& x, std::int64_t low, std::int64_t high);
  /// By `unary_place`.
  UnaryKernel unary[unary_count];
  /// By `binary_place`. Broadcasts. `out` may be `a`.
  BinaryKernel binary[binary_count];
  /// Kernels of cheap formulas for fewer than `few` contiguous f32, which take less time than a View's set-up; else
  /// null.
  void (*plain_binary[binary_count])(float* out, const float* a, const float* b, std::int64_t count);
  static constexpr std::int64_t few = 1 << 16;
  /// sum += a b, all contiguous, of one shape, and f32 or f64.
  void (*multiply_add)(const View& sum, const View& a, const View& b);
  void (*plain_multiply_add)(float* sum, const float* a, const float* b, std::int64_t count);
  /// Broadcasts; `condition` is bool.
  void (*where)(const View& out, const View& condition, const View& a, const View& b);
  /// min(max(x, low), high) and a + weight (b − a). Broadcasts. `out` may be the first input.
  void (*clamp)(const View& out, const View& x, const View& low, const View& high);
  void (*lerp)(const View& out, const View& a, const View& b, const View& weight);
  /// The derivative of digamma of order `order`, at least 1.
  void (*polygamma)(const View& out, const View& x, std::int64_t order);
  /// `out` has size 1 on each reduced axis. Indices are counted in row-major order over the reduced axes.
  UnaryKernel reduce[static_cast<int>(Reduction::count)];
  /// Σ (x − mean)² / divisor over the axes where `out` has size 1, or its square root.
  void (*variance)(const View& out, const View& x, double divisor, bool root);
  /// (Σ |x|^p)^(1/p) over the axes where `out` has size 1.
  void (*norm)(const View& out, const View& x, double p);
  /// Cumulative sums and products along `axis`, from its start or, if `backwards`, from its end.
  void (*cumsum)(const View& out, const View& x, int axis, bool backwards);
  void (*cumprod)(const View& out, const View& x, int axis, bool backwards);
  /// y_i = log(e^x_0 + … + e^x_i) along `axis`.
  void (*logcumsumexp)(const View& out, const View& x, int axis);
  /// y_i = b_i + a_i y_(i − 1), or y_(i + 1) if `backwards`; all of one floating dtype.
  void (*recurrence)(const View& out, const View& a, const View& b, int axis, bool backwards);
  /// The indices, contiguous i64 (…, K), of the elements of K ≤ 2 ranks in the rows of (…, N), in ascending order. A row that
  /// has NaN gives the index of the first; but a rank of −1 − r stands for r where NaN are the largest.
  void (*places_of_ranks)(const View& out, const View& x, const std::int64_t (&ranks)[2]);
  /// The product of (…, M, K) and (…, K, N); the leading axes broadcast.
  void (*matmul)(const View& out, const View& a, const View& b, ParameterVersion version_of_b);
  /// sum += a b, f32 or f64; `sum` is contiguous.
  void (*matmul_add)(const View& sum, const View& a, const View& b, ParameterVersion version_of_b);
  /// The product of x (N, K), f32, and the weight W (K, M), f32, rounded to bf16 or f16. Null: an op rounds W by itself.
  void (*weight_product)(const View& out, const View& x, const View& W, DType weight_dtype,
                         ParameterVersion version_of_weight);
  /// Returns true if every index is in [−size, size); if not, `bad` gets one that is not.
  bool (*indices_within)(const View& indices, std::int64_t size, std::int64_t& bad);
  /// y[…, j, …] = x[…, index[…, j, …], …] along `axis`; negative indices count from the end. Returns false without
  /// writing anything, and sets `bad`, if an index is out of range.
  bool (*gather)(const View& out, const View& x, const View& index, int axis, std::int64_t& bad);
  /// out[…, index[…, j, …], …] = source[…, j, …]; of several writes to one element the last in row-major order wins.
  void (*scatter)(const View& out, const View& source, const View& index, int axis);
  /// out[…, index[…, j, …], …] += updates[…, j, …].
  void (*scatter_add)(const View& out, const View& updates, const View& index, int axis);
  /// out[…, index[…, j, …], …] becomes the larger (else the smaller) of it and source[…, j, …], NaN if either is. Null where a
  /// device has no such kernel.
  void (*scatter_extreme)(const View& out, const View& source, const View& index, int axis, bool largest);
  /// y[…, j, …] = x[…, indices[j], …]: the axes of the indices replace `axis`. Returns false and sets `bad`, as gather.
  bool (*take)(const View& out, const View& x, const View& indices, int axis, std::int64_t& bad);
  /// out[…, indices[j], …] = source[…, j, …]; of equal indices the last one wins.
  void (*index_copy)(const View& out, const View& source, const View& indices, int axis);
  /// out[…, indices[j], …] += source[…, j, …].
  void (*index_add)(const View& out, const View& source, const View& indices, int axis);
  /// The number of elements that are not 0, and their indices: (n, rank), in row-major order.
  std::int64_t (*nonzero_count)(const View& x);
  void (*nonzero)(const View& out, const View& x);
  /// Returns true if an element of a floating tensor is NaN or, with `infinities_count`, infinite.
  bool (*has_anomaly)(const View& x, bool infinities_count);
  /// Statistics of the elements and their fingerprint, for recordings. The CPU's table has it only: a recording copies
  /// what is on another device.
  ElementSummary (*summarise)(const View& x, bool statistics, bool fingerprint);
  /// Sorts along an axis; NaN is treated as the largest number, and the sort is stable.
  void (*sort)(const View& values, const View& indices, const View& x, int axis, bool descending);
  /// The first elements of a sorted axis, as many as the outputs have.
  void (*topk)(const View& values, const View& indices, const View& x, int axis, bool largest);
  /// For each value, the number of elements of its row of `sorted` that are smaller (or equal, with `right`); rows are
  /// the last axis, or `sorted` is one row for all.
  void (*searchsorted)(const View& out, const View& sorted, const View& values, bool right);
  /// Softmax over the last axis.
  UnaryKernel softmax;
  UnaryKernel log_softmax;
  /// The gradient of x from the gradient and the result of softmax.
  BinaryKernel softmax_gradient;
  BinaryKernel log_softmax_gradient;
  /// Uniform numbers in [0, 1).
  void (*uniform)(const View& out, RandomCall call);
  void (*normal)(const View& out, RandomCall call);
  void (*gumbel)(const View& out, RandomCall call);
  /// Draws bools. `p` has out's shape, or one element; it is contiguous. Returns false without writing anything, and
  /// sets `bad`, for a probability outside [0, 1].
  bool (*bernoulli)(const View& out, const View& p, RandomCall call, double& bad);
  /// Random integers: low + the high words of a 128-bit number times `count`.
  void (*randint)(const View& out, std::int64_t low, std::uint64_t count, RandomCall call);
  /// A random permutation: 0 … n − 1, sorted by 64-bit random keys, and by the numbers themselves where keys are equal.
  void (*randperm)(const View& out, RandomCall call);
  /// x / (1 − p) where the element's random number is at least p, else 0.
  void (*dropout)(const View& out, const View& x, double probability, RandomCall call);

  const ActivationKernels* activation;
  const AttentionKernels* attention;
  const ConvolutionKernels* convolution;
  const EmbeddingKernels* embedding;
  const LinearAlgebraKernels* linear_algebra;
  const LossKernels* loss;
  const NormaliseKernels* normalise;
  const PoolingKernels* pooling;
  const RecurrentKernels* recurrent;
  const ResampleKernels* resample;
  const SamplingKernels* sampling;
  const SparseKernels* sparse;
};

extern constinit KernelTable cpu_kernel_table;
/// Makes a device other than the CPU the one on which this thread's kernels run.
const KernelTable& enter_device(Device device);

/// The kernels of a device; makes it the one on which they run. Throws: DeviceError if there is no such device; the
/// errors that earlier kernels on it have found.
inline const KernelTable& kernels(Device device) {
  if (device.type != Device::Type::cpu) [[unlikely]]
    return enter_device(device);
  return cpu_kernel_table;
}

/// Runs the binary kernel at a place that has a plain one, on contiguous operands of one shape and dtype.
[[gnu::always_inline]] inline void run_alike(const KernelTable& table, int place, const View& out, const View& a,
                                             const View& b) {
  if (out.dtype == DType::f32 && out.numel < KernelTable::few) [[likely]]
    table.plain_binary[place](out.as<float>(), a.as<float>(), b.as<float>(), out.numel);
  else
    table.binary[place](out, a, b);
}

/// Called once, before any kernel runs.
void fill_kernel_tables();

}  // namespace reel::detail
