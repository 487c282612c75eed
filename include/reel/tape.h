#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/hooks.h>
#include <reel/named_tensor.h>
#include <reel/no_record.h>
#include <reel/ops/stop_gradient.h>
#include <reel/tensor.h>

namespace reel {

namespace detail {
class Differentiation;
class Hooks;
class TapeList;
class BackwardPass;
struct TapeLayout;
}  // namespace detail

/// Options of a Tape.
struct TapeOptions {
  /// Keeps entries and saved values after a backward pass, so that there can be several; an inner tape always does.
  /// Default false.
  bool persistent = false;
  /// A tape whose saved values exceed this many bytes without a backward pass warns once on stderr, naming the lines
  /// that save most. Default 4 GiB.
  std::size_t warn_bytes = std::size_t{4} << 30;
  /// Accumulates a weight's gradient over time steps as one matrix product instead of one small product per step; the
  /// sums then differ by rounding. Default true.
  bool deferred_products = true;
};

/// The action of `Tape::gradient` at a source that the target does not depend on: throw a TapeError, or give zeros.
enum class Unconnected : std::uint8_t { error, zeros };

/// Options of `Tape::gradient` and `Tape::backward`.
struct GradientOptions {
  /// The gradient of the target, in its shape; required unless the target is a single element, where it is 1 by
  /// default.
  Tensor seed = {};
  /// The action at a source that the target does not depend on. Default: throw a TapeError.
  Unconnected unconnected = Unconnected::error;
};

/// Options of `Tape::jacobian` and `Tape::batch_jacobian`.
struct JacobianOptions {
  /// The action at a source that the target does not depend on. Default: throw a TapeError.
  Unconnected unconnected = Unconnected::error;
};

/// A gradient tape: from its construction to its end, this thread records the ops whose inputs are tracked: parameters,
/// watched tensors, and what was computed from them. Tapes nest; an inner one's own gradients are recorded by the outer
/// ones, which is how higher orders arise. Lives on the stack only.
///
/// Tapes and `NoRecord` may end in any order, and on any thread: each ends what it began. The tape that is then the
/// outermost continues as such. A tape ends with the thread, or the function of a checkpoint, in which it was opened.
///
/// Unless persistent, the outermost tape drops its entries when it has differentiated, and then records anew.
class Tape : detail::Immovable {
 public:
  /// Opens a tape on this thread. Throws: TapeError under `NoRecord` while an outer tape is open.
  explicit Tape(TapeOptions options = {}, Location where = Location::here());
  /// Closes the tape; the end of the outermost one drops all entries.
  ~Tape();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

  /// Tracks a tensor that is not a parameter, from its first use on.
  /// Throws: DTypeError unless floating; TapeError for a tensor that another thread's tape computed, and if a recorded
  /// op has used the tensor since this tape was opened or last dropped its entries.
  void watch(const Arg& x);

  /// Differentiates `target` and adds into `grad()` of every parameter that it depends on; a parameter depends on
  /// itself.
  /// Throws: TapeError if the target was not recorded here, or depends on no parameter. After an exception every
  /// `grad()` is as it was.
  void backward(const Arg& target, const GradientOptions& options = {});

  /// Returns the gradients of `target` with respect to each source, in the source's shape and dtype: dense, and each
  /// with elements of its own.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see GradientOptions::unconnected); DTypeError for a source
  /// that is not floating.
  std::vector<Tensor> gradient(const Arg& target, std::span<const Tensor> sources, const GradientOptions& options = {});
  /// Returns the gradients of `target` with respect to each source, in the source's shape and dtype: dense, and each
  /// with elements of its own.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see GradientOptions::unconnected); DTypeError for a source
  /// that is not floating.
  std::vector<Tensor> gradient(const Arg& target, const std::vector<Tensor>& sources,
                               const GradientOptions& options = {}) {
    return gradient(target, std::span<const Tensor>(sources), options);
  }
  /// Returns the gradients of `target` with respect to each source, in the source's shape and dtype: dense, and each
  /// with elements of its own. The sources are named, as `named_parameters` returns them.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see GradientOptions::unconnected); DTypeError for a source
  /// that is not floating.
  std::vector<Tensor> gradient(const Arg& target, const std::vector<NamedTensor>& sources,
                               const GradientOptions& options = {}) {
    std::vector<Tensor> tensors;
    tensors.reserve(sources.size());
    for (const NamedTensor& source : sources) tensors.push_back(source.tensor);
    return gradient(target, std::span<const Tensor>(tensors), options);
  }
  /// Returns the gradient of `target` with respect to one source, in the source's shape and dtype: `Tensor gx =
  /// tape.gradient(y, x)`. It is dense, with elements of its own.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see GradientOptions::unconnected); DTypeError for a source
  /// that is not floating.
  Tensor gradient(const Arg& target, const Tensor& source, const GradientOptions& options = {}) {
    return std::move(gradient(target, std::span(&source, 1), options).front());
  }
  /// Returns the gradients of `target` with respect to two or more sources, in their shapes and dtypes: `auto [gx, gw]
  /// = tape.gradient(y, x, w)`. They are dense, each with elements of its own; the seed is 1.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source; DTypeError for a source that is not floating.
  template <class... Sources>
    requires(sizeof...(Sources) >= 2 && (std::derived_from<Sources, Tensor> && ...))
  std::array<Tensor, sizeof...(Sources)> gradient(const Arg& target, const Sources&... sources) {
    const Tensor list[] = {sources...};
    std::vector<Tensor> found = gradient(target, std::span<const Tensor>(list));
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<Tensor, sizeof...(Sources)>{std::move(found[i])...};
    }(std::index_sequence_for<Sources...>{});
  }

  /// Returns the Jacobian with respect to each source: J[o…, s…] = ∂target[o…] / ∂source[s…], in the source's dtype.
  /// One backward pass for each element of the target, over the entries between it and the sources.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see JacobianOptions::unconnected); DTypeError for a source
  /// that is not floating; ShapeError if the target and a source have more than 8 axes together.
  std::vector<Tensor> jacobian(const Arg& target, std::span<const Tensor> sources, const JacobianOptions& options = {});
  /// Returns the Jacobian with respect to each source: J[o…, s…] = ∂target[o…] / ∂source[s…], in the source's dtype.
  /// One backward pass for each element of the target, over the entries between it and the sources.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see JacobianOptions::unconnected); DTypeError for a source
  /// that is not floating; ShapeError if the target and a source have more than 8 axes together.
  std::vector<Tensor> jacobian(const Arg& target, const std::vector<Tensor>& sources,
                               const JacobianOptions& options = {}) {
    return jacobian(target, std::span<const Tensor>(sources), options);
  }
  /// Returns the Jacobian with respect to one source: J[o…, s…] = ∂target[o…] / ∂source[s…], in the source's dtype. One
  /// backward pass for each element of the target, over the entries between it and the sources.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see JacobianOptions::unconnected); DTypeError for a source
  /// that is not floating; ShapeError if the target and a source have more than 8 axes together.
  Tensor jacobian(const Arg& target, const Tensor& source, const JacobianOptions& options = {}) {
    return std::move(jacobian(target, std::span(&source, 1), options).front());
  }
  /// Returns the Jacobian of each example of a batch: target (N, o…), source (N, s…) → J[n, o…, s…] = ∂target[n, o…] /
  /// ∂source[n, s…]. One backward pass for each element of one example, which is right only if no example's target
  /// depends on another's source.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, an op used it here before it was
  /// watched, or the target does not depend on a source (see JacobianOptions::unconnected); DTypeError for a source
  /// that is not floating; ShapeError unless both have a first axis, of one size, or if the target and a source have
  /// more than 8 axes together.
  Tensor batch_jacobian(const Arg& target, const Tensor& source, const JacobianOptions& options = {});

  /// Calls f with the gradient of x, a parameter or a watched or computed tensor, when it has been accumulated, in each
  /// of this tape's differentiations of something that depends on x: `void f(const Tensor& gradient)` looks at it,
  /// `Tensor f(const Tensor& gradient)` replaces it by what it returns, or keeps it by returning an undefined tensor.
  /// Several hooks on one tensor run in the order of the calls, each on the result of the one before; a
  /// parameter's as soon as its gradient is complete, before anything is added into `grad()`. Ops that f runs are recorded
  /// by outer tapes. A hook on a parameter lives as long as the tape; any other hook until the tape drops its entries.
  /// Throws: DTypeError unless floating; TapeError unless tracked, from its first use here on. The differentiation
  /// throws what f throws; ShapeError, DTypeError, DeviceError for a gradient that does not fit x; TapeError if f
  /// overwrites its argument.
  template <class F>
    requires std::invocable<F&, const Tensor&>
  void hook(const Arg& x, F f) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, const Tensor&>>)
      add_hook(x, [f = std::move(f)](const Tensor& gradient) mutable {
        f(gradient);
        return Tensor{};
      });
    else
      add_hook(x, std::move(f));
  }

  /// Calls f for each recorded call of the named op whose gradient this tape computes, after it has been computed: with
  /// the gradients of its outputs, and those of its inputs, which f may replace. Lives as long as the tape. The ops
  /// inside a checkpoint are seen as one op, "checkpoint". Calls that batch_map ran as one before this call are seen as one;
  /// later ones of the op run one by one.
  /// Throws: Error for a name that is not an op's, or that of an op without an entry of its own (debug::ops() lists
  /// all). The differentiation throws what f throws, and ShapeError, DTypeError or DeviceError for a gradient that does
  /// not fit its input.
  void hook_op(std::string_view op, OpHook f, Location where = Location::here());

  /// Keeps the gradient of h, a parameter or a watched or computed tensor, in each of this tape's differentiations,
  /// until the tape drops its entries. In a recurrent net h_t = f(h_{t−1}, x_t) with a loss L the norms ‖∂L/∂h_t‖ show
  /// where gradients vanish or explode:
  ///   ∂L/∂h_t = ∂L/∂h_T Π_{i = t+1 … T} ∂h_i/∂h_{i−1}.
  /// Throws: DTypeError unless floating; TapeError unless tracked, from its first use here on.
  /// Source: Pascanu, Mikolov & Bengio 2013, On the difficulty of training recurrent neural networks, section 2.
  void trace(const Arg& h);
  /// Copies of the gradients that the last differentiation, or the last row of a Jacobian, found for the tensors of the
  /// calls of `trace` and `truncate`, in the order of the calls.
  std::vector<Traced> traced() const;

  /// The number of entries that this tape and those around it have now.
  std::size_t size() const;
  /// The bytes of this thread's entries, and of the values saved for them.
  std::size_t bytes() const;
  /// The most that `bytes()` has been since the outermost tape opened or `reset_peak()`; gradients are not included.
  std::size_t peak_bytes() const;
  /// Sets `peak_bytes()` to the present `bytes()`.
  void reset_peak();
  /// The bytes that this thread holds for entries, in use or not. The memory of the longest recording is kept for later
  /// ones, also of later tapes, and shrinks by an eighth after each that needs less.
  std::size_t capacity() const;

 private:
  friend class detail::Differentiation;
  friend struct detail::TapeLayout;
  bool consumes_list() const;
  bool is_enclosed() const;
  std::uint32_t first_slot() const;
  detail::TapeList& usable(const char* function, Location where) const;
  /// Throws: TapeError if an op used x on this tape before any tape watched it.
  void check_unused(const char* function, const Tensor& x, Location where) const;
  /// Throws: TapeError unless x has a slot, and all of its uses on this tape are recorded.
  std::uint32_t tracked_slot(const char* function, const Tensor& x, Location where) const;
  void add_hook(const Arg& x, GradientHook f);
  detail::Hooks& hooks();
  /// Configures a backward pass by the options and hooks; returns the hooks that observe it, or null.
  detail::Hooks* prepare(detail::BackwardPass& pass);

  TapeOptions options_;
  detail::TapeList& list_;
  std::unique_ptr<detail::Hooks> hooks_;  // null: none yet
  bool differentiating_ = false;
  std::uint32_t first_slot_;     // slots below belong to outer tapes
  std::uint32_t first_period_;   // of the log of what has used untracked tensors
  std::uint64_t opening_epoch_;  // during which these hold
};

}  // namespace reel
