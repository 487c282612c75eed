#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/tensor.h>

// GPUs. A tensor is made on one by `DeviceGuard guard(cuda::device());`, by a creation function's .device, or by
// to(x, device); ops run where their operands lie. They are queued: the CPU goes on at once, and waits only where values
// come back to it, as by item() and printing (debug::warn_sync shows where). Each thread queues on a stream of its own.
//
// The backend, libreel_cuda.so, is opened the first time that something here, or a tensor, asks for a device. Nothing
// here fails where there is none, but for what needs a device.

namespace reel {

/// A Device of "cpu", "cuda" (the same as "cuda:0"), "cuda:1", or "cuda:auto": that GPU which has most free memory.
/// Throws: DeviceError for anything else, for a GPU that there is not, and for "cuda:auto" where there is none.
Device parse_device(std::string_view name, Location where = Location::here());

namespace cuda {

/// Whether there is a GPU that can be used.
bool is_available();
/// A sentence that says why there is none; empty where there is one.
std::string why_not();
int device_count();
/// That of a number. Throws: DeviceError where there is no such GPU.
Device device(int index = 0, Location where = Location::here());

/// What a GPU is.
struct Properties {
  std::string name;
  std::size_t memory;  ///< bytes
  int multiprocessors;
  int major, minor;  ///< compute capability
};
/// Throws: DeviceError where there is no such GPU.
Properties properties(Device device, Location where = Location::here());

/// Waits until a GPU has done all that this program has queued on it. Throws: DeviceError; what ops of this thread
/// have found wrong with their operands, such as an index out of range, in the name of the op.
void synchronize(Device device, Location where = Location::here());
/// The same for all GPUs.
void synchronize(Location where = Location::here());

// Memory. What tensors free is kept for reuse, by stream.

/// In bytes.
struct MemoryStatistics {
  std::size_t used;      ///< by this program's tensors, and what ops need beside them
  std::size_t peak;      ///< the most of that since the start, or since reset_peak_memory
  std::size_t reserved;  ///< taken from the GPU: used, or kept for reuse
  std::size_t free;      ///< of the GPU, for whoever asks
  std::size_t total;     ///< that the GPU has
};
MemoryStatistics memory_statistics(Device device, Location where = Location::here());
void reset_peak_memory(Device device, Location where = Location::here());

inline constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
/// The most that is ever reserved. What is beyond it is an error, as if the GPU had no more.
void set_memory_limit(Device device, std::size_t bytes, Location where = Location::here());
/// Takes so many bytes now, for what this thread does, and keeps as many for as long as the program runs.
/// Throws: MemoryError where there are not as many.
void reserve_memory(Device device, std::size_t bytes, Location where = Location::here());
/// Gives what is kept for reuse back to the GPU, but for what is reserved; waits for what is queued.
void release_memory_cache(Device device, Location where = Location::here());

/// Lets products and convolutions of f32 round their operands to TF32, which has 10 bits of mantissa, and is some times
/// as fast. Off unless asked for; for all threads.
void allow_tf32(bool allowed);
bool tf32_is_allowed();

/// A step that is recorded once and then replayed as a whole, without the time that the CPU takes to queue its ops. All
/// that the step does has to be the same each time: the same ops on tensors of the same shapes.
///
///     cuda::Graph step([&](std::span<const Tensor> batch) {
///       adam.zero_grad();
///       Tape tape;
///       Tensor loss = cross_entropy(model(batch[0]), batch[1]);
///       tape.backward(loss);
///       adam.step();
///       return loss;
///     }, {x, y});
///     for (auto& [x, y] : data) Tensor loss = step({x, y});
///
/// The first call runs the function as it is; what is made on first use is made then. The second records it, and the
/// later ones replay that: values are computed anew, random numbers are drawn anew, optimisers and moving averages
/// count their steps and take the learning rate of the time; all numbers are those that the function itself would give.
/// Other code of the function does not run again: what it adds to a counter, or puts in place of a tensor outside
/// (h = stop_gradient(next)), stays what it was; carry states as inputs and results, or in place: copy_(h, next).
///
/// While it is recorded, the function may not wait for the GPU (item(), printing, nonzero and what else depends on
/// values), nor copy values from or to the CPU: a DeviceError names the op. Parameters have to be on the graph's GPU,
/// and their gradients those of the step: zero_grad() comes first. It is used by one thread.
class Graph {
 public:
  using Step = std::function<Tensor(std::span<const Tensor>)>;
  using Steps = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

  /// `inputs` say how those of each call are: their shapes, dtypes and device. Throws: DeviceError unless they lie on one
  /// GPU.
  Graph(Step function, std::vector<Tensor> inputs, Location where = Location::here());
  Graph(Steps function, std::vector<Tensor> inputs, Location where = Location::here());
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// Runs the step: queued. The result belongs to the caller: later calls leave it alone.
  /// Throws: ShapeError or DTypeError for an input that is not as those of the constructor, naming both; DeviceError for
  /// what cannot be recorded; what the function throws.
  Tensor operator()(const std::vector<Tensor>& inputs, Location where = Location::here());
  /// All results.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, Location where = Location::here());
  /// Whether calls are replays.
  bool is_recorded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cuda
}  // namespace reel
