#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <reel/device.h>
#include <reel/dtype.h>
#include <reel/location.h>

struct CUstream_st;

namespace reel {
class Generator;
}

namespace reel::detail {

struct Body;
struct Call;
struct KernelTable;
struct OptimiserKernels;

/// Elements on a device, followed by the module's own data about them.
struct DeviceBlock {
  void* data;
};

/// The properties of a device.
struct DeviceDescription {
  std::string name;
  std::size_t bytes;  // of its memory
  int multiprocessors;
  int major, minor;  // compute capability
};

/// Device memory statistics in bytes.
struct DeviceMemory {
  std::size_t used, peak;   // by tensors and kernels of this program
  std::size_t reserved;     // allocated from the driver: used, or kept for reuse
  std::size_t free, total;  // of the device, whatever program uses the rest
  std::size_t limit;        // of the reserved bytes; SIZE_MAX: none
};

/// A recorded graph on a device, to be launched any number of times.
class RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
  /// Ends the recording and launches what was recorded. Throws: DeviceError.
  virtual void finish() = 0;
  /// Queues one replay. `seed`, `added_calls`: the seed of random ops, and the number of random calls made since the
  /// recording.
  virtual void launch(std::uint64_t seed, std::uint64_t added_calls) = 0;
};

/// The library of kernels for devices other than the CPU: opened at the first use of such a device, and never closed.
class DeviceModule {
 public:
  virtual ~DeviceModule() = default;

  /// The number of devices; if it is 0, `absence` says why.
  virtual int device_count() const = 0;
  virtual const std::string& absence() const = 0;
  virtual const KernelTable& kernels() const = 0;
  virtual const OptimiserKernels& optimiser_kernels() const = 0;

  /// Makes a device the one on which this thread's kernels run. Throws: the errors that earlier kernels have found.
  virtual void enter(int device) = 0;
  /// Does what `enter` does, and returns the stream on which this thread's kernels run.
  virtual CUstream_st* stream(int device) = 0;
  /// Called before an op with an operand on a device runs: makes the device wait for what other threads have queued for
  /// the operands.
  virtual void prepare(const Call& call) = 0;
  /// Called before one tensor is read or, if `writes`, written outside of an op: makes the device wait for what other
  /// threads have queued for it.
  virtual void prepare(const Body& x, bool writes) = 0;

  /// Allocates device memory. Throws: MemoryError in the name of `op`.
  virtual DeviceBlock* allocate(int device, std::size_t bytes, const char* op, Location where) = 0;
  virtual void free(DeviceBlock* block) noexcept = 0;
  /// The address of a permanent copy of a number, for ops of this thread; null if there is none and none can be made
  /// now.
  virtual void* constant(int device, DType dtype, double number, std::int64_t integer) = 0;

  /// Copies from the CPU's memory, which may be overwritten as soon as this returns.
  virtual void copy_in(int device, void* to, const void* from, std::size_t bytes) = 0;
  /// Copies to the CPU's memory. Waits until all work that this thread has queued is done. Throws: the errors that
  /// kernels have found.
  virtual void copy_out(int device, void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes) = 0;
  /// Waits until all work that this thread has queued is done. Throws: the errors that kernels have found.
  virtual void synchronise(int device) = 0;

  /// Records a fingerprint of every bit of a contiguous tensor, without waiting. Returns the fingerprint's id.
  virtual std::uint32_t record_fingerprint(const Body& x) = 0;
  /// Compares x with a recorded fingerprint, without waiting: if a bit differs, a TapeError is reported like the errors
  /// that kernels find, saying that the given result of the op's function has changed.
  virtual void check_values(std::uint32_t recorded, const Body& x, const char* op, Location where, int result) = 0;

  /// Begins a range of this thread in the timeline of the vendor's profiler, within the one that began last; `name` is
  /// copied. Returns the number of ranges around it; below 0 where no profiler runs.
  virtual int begin_range(const char* name) noexcept = 0;
  virtual void end_range() noexcept = 0;

  virtual DeviceDescription describe(int device) const = 0;
  virtual DeviceMemory memory(int device) const = 0;
  /// Limits the reserved bytes; SIZE_MAX: no limit.
  virtual void set_memory_limit(int device, std::size_t bytes) = 0;
  /// Reserves `bytes` of device memory for this thread and keeps them reserved. Throws: MemoryError.
  virtual void reserve_memory(int device, std::size_t bytes, Location where) = 0;
  virtual void release_memory(int device) = 0;
  virtual void reset_peak_memory(int device) = 0;

  /// Begins a recording: work that this thread queues on the device is recorded instead of run. The thread must not
  /// wait for it.
  virtual std::unique_ptr<RecordedGraph> record(int device, Generator& generator) = 0;
  /// Returns true if this thread records a graph.
  virtual bool records() const noexcept = 0;
  /// During a recording: returns true if the elements were made since it began.
  virtual bool has_recorded(const Body& x) const noexcept = 0;
  /// During a recording: device memory that each launch fills from `numbers` before it runs; `numbers` may change
  /// between launches and lives as long as the graph.
  virtual const void* recorded_numbers(const void* numbers, std::size_t bytes) = 0;
  /// During a recording: registers a function to be called before each launch but the first.
  virtual void before_launch(std::function<void()> f) = 0;
};

/// Calls `DeviceModule::prepare` for a tensor if it is on a device.
void prepare_on_device(const Body& x, bool writes);
/// The module if this thread records a graph; else null.
DeviceModule* recording_module() noexcept;

/// Is notified of each wait of this thread for a device.
class WaitListener {
 public:
  virtual ~WaitListener() = default;
  virtual void waits(Device device, const char* reason) = 0;
};
/// Notifies the context's wait listener.
void notify_wait(Device device, const char* reason);

/// The module. Throws: DeviceError with the reason if there is none.
DeviceModule& device_module();
/// The module, for a device other than the CPU, in the name of `op`. Throws: DeviceError if no such device exists.
DeviceModule& module_of_device(const char* op, Device device, Location where);
/// The module; null if it has not been opened.
DeviceModule* opened_device_module() noexcept;
/// Why there is no module; empty if there is one.
const std::string& device_module_absence();

/// The one function that a module exports. Its argument is the library's `header_fingerprint`, a hash of all headers
/// that the two share; it returns null if the module's own differs.
using OpenDeviceModule = DeviceModule* (*)(std::uint64_t fingerprint);
inline constexpr const char* open_device_module_name = "reel_open_device_module";

}  // namespace reel::detail
