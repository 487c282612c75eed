#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel {

namespace detail {
class TapeList;
}

struct TapeOptions {
  /// Keeps entries and saved values after a backward, so that there can be several. An inner tape always does.
  bool persistent = false;
  /// A tape that saves more than this without a backward warns once, naming the lines that save most.
  std::size_t warn_bytes = std::size_t{4} << 30;
};

/// What `Tape::gradient` does with a source that the target does not depend on.
enum class Unconnected : std::uint8_t { error, zeros };

struct GradientOptions {
  /// The gradient of the target; required unless the target is a single element, where it is 1.
  Tensor seed = {};
  Unconnected unconnected = Unconnected::error;
};

/// From its construction to its end, this thread records the ops whose inputs are tracked: parameters, watched
/// tensors, and what was computed from them. Tapes nest; an inner one's own gradients are recorded by the outer ones,
/// which is how higher orders arise. Lives on the stack only.
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

  /// Tracks a tensor that is not a parameter.
  /// Throws: DTypeError unless floating; TapeError for what another thread's tape computed.
  void watch(const Arg& x);

  /// Differentiates `target` and adds into `grad()` of every parameter it depends on.
  /// Throws: TapeError if the target was not recorded here, or depends on no parameter. Whatever throws leaves every
  /// `grad()` as it was.
  void backward(const Arg& target, const GradientOptions& options = {});

  /// Gradients of `target` with respect to each source, in the sources' shapes and dtypes.
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
  bool consumes_list(const detail::TapeList& list) const;

  TapeOptions options_;
  bool recorded_before_;      // whether this thread recorded when the tape opened
  std::uint32_t first_slot_;  // slots below belong to outer tapes
  int depth_;                 // 1: outermost
};

/// While it lives, nothing is recorded on this thread.
class NoRecord {
 public:
  NoRecord();
  ~NoRecord();
  NoRecord(const NoRecord&) = delete;
  NoRecord& operator=(const NoRecord&) = delete;

 private:
  bool recorded_before_;
};

/// Whether ops on tracked tensors are being recorded on this thread.
bool is_recording();

/// The same values, sharing elements, but not tracked: nothing flows back through it.
Tensor stop_gradient(const Arg& x);

}  // namespace reel
