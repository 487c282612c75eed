#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <reel/hooks.h>
#include <reel/tensor.h>

namespace reel {

namespace detail {
class Differentiation;
class Hooks;
class TapeList;
class Walk;
}  // namespace detail

struct TapeOptions {
  /// Keeps entries and saved values after a backward, so that there can be several. An inner tape always does.
  bool persistent = false;
  /// A tape that saves more than this without a backward warns once, naming the lines that save most.
  std::size_t warn_bytes = std::size_t{4} << 30;
  /// Works the gradient of a weight that is multiplied by few rows at a time out of many steps' rows at once. Without it
  /// each step's product is formed in its turn; the sums then differ by rounding.
  bool deferred_products = true;
};

/// What `Tape::gradient` does with a source that the target does not depend on.
enum class Unconnected : std::uint8_t { error, zeros };

struct GradientOptions {
  /// The gradient of the target; required unless the target is a single element, where it is 1.
  Tensor seed = {};
  Unconnected unconnected = Unconnected::error;
};

struct JacobianOptions {
  Unconnected unconnected = Unconnected::error;
};

/// From its construction to its end, this thread records the ops whose inputs are tracked: parameters, watched
/// tensors, and what was computed from them. Tapes nest; an inner one's own gradients are recorded by the outer ones,
/// which is how higher orders arise. Lives on the stack only.
///
/// Tapes and `NoRecord` may end in any order, and on any thread: each ends what it began. The tape that is the outermost
/// from then on goes on as such. A tape ends with the thread, or the function of a checkpoint, in which it was opened.
///
/// Unless persistent, the outermost tape forgets what it recorded when it has differentiated, and then records anew.
class Tape {
 public:
  /// Throws: TapeError under `NoRecord` while an outer tape is open.
  explicit Tape(TapeOptions options = {}, Location where = Location::here());
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

  /// Tracks a tensor that is not a parameter, from its first use on.
  /// Throws: DTypeError unless floating; TapeError for what another thread's tape computed, and if an op that tapes record
  /// has used the tensor since this one was opened or last forgot what it had recorded.
  void watch(const Arg& x);

  /// Differentiates `target` and adds into `grad()` of every parameter it depends on; a parameter depends on itself.
  /// Throws: TapeError if the target was not recorded here, or depends on no parameter. Whatever throws leaves every
  /// `grad()` as it was.
  void backward(const Arg& target, const GradientOptions& options = {});

  /// Gradients of `target` with respect to each source, in its shape and dtype: dense, and each with elements of its own.
  /// Throws: TapeError if the target was not recorded here, a source is not tracked, or there is no way from a source
  /// to the target; DTypeError for a source that is not floating.
  std::vector<Tensor> gradient(const Arg& target, std::span<const Tensor> sources, const GradientOptions& options = {});
  std::vector<Tensor> gradient(const Arg& target, const std::vector<Tensor>& sources,
                               const GradientOptions& options = {}) {
    return gradient(target, std::span<const Tensor>(sources), options);
  }
  /// `Tensor gx = tape.gradient(y, x)`.
  Tensor gradient(const Arg& target, const Tensor& source, const GradientOptions& options = {}) {
    return std::move(gradient(target, std::span(&source, 1), options).front());
  }
  /// `auto [gx, gw] = tape.gradient(y, x, w)`.
  template <class... Sources>
    requires(sizeof...(Sources) >= 2 && (std::derived_from<Sources, Tensor> && ...))
  std::array<Tensor, sizeof...(Sources)> gradient(const Arg& target, const Sources&... sources) {
    const Tensor list[] = {sources...};
    std::vector<Tensor> found = gradient(target, std::span<const Tensor>(list));
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<Tensor, sizeof...(Sources)>{std::move(found[i])...};
    }(std::index_sequence_for<Sources...>{});
  }

  /// For each source: J[o…, s…] = ∂target[o…] / ∂source[s…], in the source's dtype. One walk back for each element of
  /// the target, over what lies between it and the sources.
  /// Throws: as `gradient`; ShapeError if the target and a source have more than 8 axes together.
  std::vector<Tensor> jacobian(const Arg& target, std::span<const Tensor> sources, const JacobianOptions& options = {});
  std::vector<Tensor> jacobian(const Arg& target, const std::vector<Tensor>& sources,
                               const JacobianOptions& options = {}) {
    return jacobian(target, std::span<const Tensor>(sources), options);
  }
  Tensor jacobian(const Arg& target, const Tensor& source, const JacobianOptions& options = {}) {
    return std::move(jacobian(target, std::span(&source, 1), options).front());
  }
  /// The same for each example of a batch: target (N, o…), source (N, s…) → J[n, o…, s…] = ∂target[n, o…] / ∂source[n, s…].
  /// One walk for each element of one example, which is right only if no example's target depends on another's source.
  /// Throws: as `jacobian`; ShapeError unless both have a first axis, of one size.
  Tensor batch_jacobian(const Arg& target, const Tensor& source, const JacobianOptions& options = {});

  /// Calls f with the gradient of x, a parameter or a watched or computed tensor, when all that flows back to x has been
  /// added up, in each of this tape's differentiations of something that depends on x: `void f(const Tensor& gradient)`
  /// looks at it, `Tensor f(const Tensor& gradient)` replaces it by what it returns, or keeps it by returning an
  /// undefined tensor. Several hooks on one tensor run in the order of the calls, each on the result of the one before;
  /// those on parameters before anything is added into `grad()`. What f computes is recorded by outer tapes. A hook on a
  /// parameter lives as long as the tape; another one until the tape forgets what it recorded.
  /// Throws: DTypeError unless floating; TapeError unless tracked. The differentiation throws what f throws; ShapeError,
  /// DTypeError, DeviceError for a gradient that does not fit x; TapeError if f overwrites its argument.
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

  /// Calls f for each recorded call of an op whose gradient this tape forms, after it has been formed: with the
  /// gradients of its outputs, and those of its inputs, which f may replace. Lives as long as the tape. What runs inside
  /// a checkpoint is seen as one op of that name.
  /// Throws: Error for a name that is no op's, or one of an op that leaves no entry of its own (debug::ops() lists all).
  /// The differentiation throws as for `hook`.
  void hook_op(std::string_view op, OpHook f, Location where = Location::here());

  /// Keeps the gradient of h, a parameter or a watched or computed tensor, in each of this tape's differentiations, until
  /// it forgets what it recorded. In a recurrent net h_t = f(h_{t−1}, x_t) with a loss L the norms ‖∂L/∂h_t‖ show where
  /// gradients vanish or explode:
  ///   ∂L/∂h_t = ∂L/∂h_T Π_{i = t+1 … T} ∂h_i/∂h_{i−1}.
  /// Throws: DTypeError unless floating; TapeError unless tracked.
  /// Source: Pascanu, Mikolov & Bengio 2013, On the difficulty of training recurrent neural networks, section 2.
  void trace(const Arg& h);
  /// What the last differentiation, or the last row of a Jacobian, found for the calls of `trace` and `truncate`, in
  /// their order: copies.
  std::vector<Traced> traced() const;

  /// Entries on the list now, of this tape and those around it.
  std::size_t size() const;
  /// Bytes of entries, and of values saved for them.
  std::size_t bytes() const;
  /// The most that `bytes()` has been since the outermost tape opened or `reset_peak()`; gradients are not among it.
  std::size_t peak_bytes() const;
  void reset_peak();
  /// Bytes that this thread holds for entries, in use or not. What the longest recording needed stays for those that
  /// follow, also of later tapes, an eighth less after each that needs less.
  std::size_t capacity() const;

 private:
  friend class detail::Differentiation;
  bool consumes_list() const;
  bool is_enclosed() const;
  std::uint32_t first_slot() const;
  detail::TapeList& usable(const char* function, Location where) const;
  void add_hook(const Arg& x, GradientHook f);
  detail::Hooks& hooks();
  /// Sets a walk up as the options and hooks ask; the hooks that it attends, or null.
  detail::Hooks* prepare(detail::Walk& walk);

  TapeOptions options_;
  detail::TapeList& list_;
  std::unique_ptr<detail::Hooks> hooks_;  // null: none yet
  bool differentiating_ = false;
  std::uint32_t first_slot_;     // slots below belong to outer tapes
  std::uint32_t first_period_;   // of the log of what has used untracked tensors
  std::uint64_t opening_epoch_;  // during which these hold
};

/// While it lives, nothing is recorded on this thread, but by tapes that are opened within.
class NoRecord {
 public:
  NoRecord();
  ~NoRecord();
  NoRecord(const NoRecord&) = delete;
  NoRecord& operator=(const NoRecord&) = delete;
};

/// Whether ops on tracked tensors are being recorded on this thread.
bool is_recording();

/// The same values, sharing elements, but not tracked: nothing flows back through it.
Tensor stop_gradient(const Arg& x);

}  // namespace reel
