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

/// \namespace reel::cuda
/// GPUs. A tensor is created on one by `DeviceGuard guard(cuda::device());`, by a creation function's .device, or by
/// to(x, device); ops run where their operands are. They are queued: the CPU continues at once, and waits only where
/// values come back to it, as by item() and printing (debug::warn_sync shows where). Each thread queues on a stream of
/// its own.
///
/// The backend, libreel_cuda.so, is opened the first time that something here, or a tensor, needs a device. Without a
/// GPU only functions that need one fail.

namespace reel {

/// The device of a name: "cpu", "cuda" (GPU 0), "cuda:1", or "cuda:auto": the GPU with the most free memory.
/// Throws: DeviceError for any other name, for a GPU that does not exist, and for "cuda:auto" without a GPU.
Device parse_device(std::string_view name, Location where = Location::here());

namespace cuda {

/// True if there is a GPU that can be used.
bool is_available();
/// A sentence that says why no GPU can be used; empty if one can.
std::string why_not();
/// The number of GPUs that can be used; 0 without the backend.
int device_count();
/// The CUDA device with the given index. Throws: DeviceError if no such GPU exists.
Device device(int index = 0, Location where = Location::here());

/// The properties of a GPU.
struct Properties {
  std::string name;     ///< as the driver calls it
  std::size_t memory;   ///< bytes
  int multiprocessors;  ///< the number of streaming multiprocessors
  int major,            ///< compute capability, before the point
      minor;            ///< compute capability, behind the point
};
/// The properties of a GPU. Throws: DeviceError if no such GPU exists.
Properties properties(Device device, Location where = Location::here());

/// Waits until all work that this program has queued on a GPU has finished.
/// Throws: DeviceError if no such GPU exists; errors that ops of this thread have found in their operands on the GPU,
/// such as an index out of range, in the name of the op.
void synchronize(Device device, Location where = Location::here());
/// Waits until all work that this program has queued on every GPU has finished.
/// Throws: errors that ops of this thread have found in their operands on the GPUs, such as an index out of range, in
/// the name of the op.
void synchronize(Location where = Location::here());

/// Device memory statistics in bytes. Memory that tensors free is kept for reuse, by stream.
struct MemoryStatistics {
  std::size_t used;      ///< used by this program's tensors, and by ops for intermediate results
  std::size_t peak;      ///< the most that `used` has been since the start, or since reset_peak_memory
  std::size_t reserved;  ///< taken from the GPU: used, or kept for reuse
  std::size_t free;      ///< free memory of the GPU, available to any program
  std::size_t total;     ///< the memory of the GPU
};
/// Memory statistics of a GPU. Throws: DeviceError if no such GPU exists.
MemoryStatistics memory_statistics(Device device, Location where = Location::here());
/// Sets `peak` of the memory statistics of a GPU to the present `used`. Throws: DeviceError if no such GPU exists.
void reset_peak_memory(Device device, Location where = Location::here());

/// The memory limit that is none; the default of every GPU.
inline constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
/// Sets the most bytes that this program reserves on a GPU; default `no_limit`. An allocation beyond it throws
/// MemoryError, as if the GPU had no more.
/// Throws: DeviceError if no such GPU exists.
void set_memory_limit(Device device, std::size_t bytes, Location where = Location::here());
/// Reserves `bytes` of device memory for this thread's stream and keeps them reserved until the program ends.
/// Throws: MemoryError if the GPU has less free memory; DeviceError if no such GPU exists.
void reserve_memory(Device device, std::size_t bytes, Location where = Location::here());
/// Returns the memory that is kept for reuse to the GPU, except for reserved memory; waits for queued work.
/// Throws: DeviceError if no such GPU exists.
void release_memory_cache(Device device, Location where = Location::here());

/// Sets whether products and convolutions of f32 may round their operands to TF32, which has 10 bits of mantissa and is
/// several times faster. Default false; holds for all threads.
void allow_tf32(bool allowed);
/// True if products and convolutions of f32 may round their operands to TF32; false at first. See allow_tf32.
bool tf32_is_allowed();

/// A CUDA graph of a training step: recorded once and then replayed as a whole, without the time that the CPU takes to
/// queue its ops. The step must not vary: equal ops on tensors of equal shapes at each call.
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
/// The first call runs the function as it is; what is created on first use is created then. The second records it, and
/// the later ones replay the recording: values are computed anew, random numbers are drawn anew, optimisers and moving
/// averages count their steps and take the present learning rate; all numbers equal those of the function itself.
/// Other code of the function does not run again: a counter that it adds to, or a tensor outside that it replaces
/// (h = stop_gradient(next)), stays what it was; carry states as inputs and results, or in place: copy_(h, next).
///
/// While it is recorded, the function may not wait for the GPU (item(), printing, nonzero and any other op whose
/// result's shape depends on values), nor copy values from or to the CPU: a DeviceError names the op. Parameters have
/// to be on the graph's GPU, and their gradients those of the step: zero_grad() comes first. A graph is used by one
/// thread.
class Graph {
 public:
  /// A step with one result.
  using Step = std::function<Tensor(std::span<const Tensor>)>;
  /// A step with several results.
  using Steps = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

  /// A step with one result: a graph of `function`, whose inputs at each call must have the shapes, dtypes and device
  /// of `inputs`.
  /// Throws: DeviceError unless they are on one GPU.
  Graph(Step function, std::vector<Tensor> inputs, Location where = Location::here());
  /// A step with several results: a graph of `function`, whose inputs at each call must have the shapes, dtypes and
  /// device of `inputs`.
  /// Throws: DeviceError unless they are on one GPU.
  Graph(Steps function, std::vector<Tensor> inputs, Location where = Location::here());
  /// Takes over the graph.
  Graph(Graph&&) noexcept;
  /// Takes over the graph.
  Graph& operator=(Graph&&) noexcept;
  /// Releases the recording and its memory.
  ~Graph();

  /// Runs the step and returns its first result; the work is queued. The result belongs to the caller: later calls do
  /// not overwrite it.
  /// Throws: ShapeError or DTypeError for an input that differs from that of the constructor, naming both; DeviceError
  /// for an op that cannot be recorded; what the function throws.
  Tensor operator()(const std::vector<Tensor>& inputs, Location where = Location::here());
  /// Runs the step and returns all its results; the work is queued. The results belong to the caller: later calls do
  /// not overwrite them.
  /// Throws: ShapeError or DTypeError for an input that differs from that of the constructor, naming both; DeviceError
  /// for an op that cannot be recorded; what the function throws.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, Location where = Location::here());
  /// True if the step is recorded, so that calls replay it.
  bool is_recorded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cuda
}  // namespace reel
