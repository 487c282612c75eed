#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <reel/device.h>
#include <reel/dtype.h>
#include <reel/location.h>

namespace reel {
class Generator;
}

namespace reel::detail {

struct Body;
struct Call;
struct KernelTable;
struct OptimiserKernels;

/// Elements on a device; what the module keeps about them lies behind it.
struct DeviceBlock {
  void* data;
};

/// What a device is.
struct DeviceDescription {
  std::string name;
  std::size_t bytes;  // of its memory
  int multiprocessors;
  int major, minor;  // compute capability
};

/// Bytes of a device's memory.
struct DeviceMemory {
  std::size_t used, peak;   // by tensors and kernels of this program
  std::size_t reserved;     // taken from the driver: used, or kept for reuse
  std::size_t free, total;  // of the device, whoever uses the rest
  std::size_t limit;        // of what is reserved; SIZE_MAX: none
};

/// What a graph's replay does on the device, and with what it is told.
class RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
  /// Ends the recording; what was queued meanwhile runs with the next launch. Throws: DeviceError.
  virtual void finish() = 0;
  /// Queued. `draws`: the seed that random ops draw by, and how many calls have been made since the recording.
  virtual void launch(std::uint64_t seed, std::uint64_t added_calls) = 0;
};

/// The library of kernels for devices that are no CPU: opened when the first of them is asked for, and never closed.
class DeviceModule {
 public:
  virtual ~DeviceModule() = default;

  /// If there are none, `absence` says why.
  virtual int device_count() const = 0;
  virtual const std::string& absence() const = 0;
  virtual const KernelTable& kernels() const = 0;
  virtual const OptimiserKernels& optimiser_kernels() const = 0;

  /// Makes a device the one that this thread's kernels run on. Throws: what earlier kernels have found wrong.
  virtual void enter(int device) = 0;
  /// Called before an op runs that a device takes part in: waits, on the device, for what other threads have queued for
  /// its operands.
  virtual void prepare(const Call& call) = 0;
  /// The same for one tensor that is read, or written to, outside of an op.
  virtual void prepare(const Body& x, bool writes) = 0;

  /// Throws: MemoryError in the name of `op`.
  virtual DeviceBlock* allocate(int device, std::size_t bytes, const char* op, Location where) = 0;
  virtual void free(DeviceBlock* block) noexcept = 0;
  /// Where a number lies for good, for ops of this thread; null where it does not and cannot be put there now.
  virtual void* constant(int device, DType dtype, double number, std::int64_t integer) = 0;

  /// From the CPU's memory, which may be overwritten as soon as this returns.
  virtual void copy_in(int device, void* to, const void* from, std::size_t bytes) = 0;
  /// To the CPU's memory. Waits until all that this thread has queued is done. Throws: what kernels have found wrong.
  virtual void copy_out(int device, void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes) = 0;
  /// Waits until all that this thread has queued is done. Throws: what kernels have found wrong.
  virtual void synchronise(int device) = 0;

  /// Notes every bit of a contiguous tensor, without waiting. Returns what the note is known by.
  virtual std::uint32_t note_values(const Body& x) = 0;
  /// If the bits of x are others than were noted, a TapeError follows, as for what kernels find wrong: result `number` of
  /// the op's function has changed.
  virtual void check_values(std::uint32_t noted, const Body& x, const char* op, Location where, int number) = 0;

  virtual DeviceDescription describe(int device) const = 0;
  virtual DeviceMemory memory(int device) const = 0;
  /// What is reserved stays below; SIZE_MAX: no limit.
  virtual void set_memory_limit(int device, std::size_t bytes) = 0;
  /// Takes so many bytes for this thread now, and keeps them. Throws: MemoryError.
  virtual void reserve_memory(int device, std::size_t bytes, Location where) = 0;
  virtual void release_memory(int device) = 0;
  virtual void reset_peak_memory(int device) = 0;

  /// From here on, what this thread queues on a device is recorded and does not run. It may not wait for it.
  virtual std::unique_ptr<RecordedGraph> record(int device, Generator& generator) = 0;
  /// Whether this thread records a graph.
  virtual bool records() const noexcept = 0;
  /// Of a recording: whether the elements were made since it began.
  virtual bool has_recorded(const Body& x) const noexcept = 0;
  /// Of a recording: memory that each launch fills from `numbers` before it runs; `numbers` may change between launches
  /// and lives as long as the graph.
  virtual const void* recorded_numbers(const void* numbers, std::size_t bytes) = 0;
  /// Of a recording: something to be called before each launch but the first.
  virtual void before_launch(std::function<void()> f) = 0;
};

/// As `DeviceModule::prepare`, wherever the tensor lies.
void prepare_on_device(const Body& x, bool writes);
/// The module, where this thread records a graph; else null.
DeviceModule* recording_module() noexcept;

/// Hears of each wait of this thread for a device.
class WaitListener {
 public:
  virtual ~WaitListener() = default;
  virtual void waits(Device device, const char* reason) = 0;
};
/// Null: nobody listens.
extern thread_local constinit WaitListener* wait_listener;
/// Tells the listener.
void note_wait(Device device, const char* reason);

/// The module. Throws: DeviceError where there is none, saying why.
DeviceModule& device_module();
/// The same for one device that is no CPU, in the name of `op`. Throws: DeviceError where there is no such device.
DeviceModule& module_of_device(const char* op, Device device, Location where);
/// Null where it has not been opened.
DeviceModule* opened_device_module() noexcept;
/// Why there is no module; empty where there is one.
const std::string& device_module_absence();

/// The one function that a module exports. It gets the library's `build_fingerprint`, and gives null where its own is
/// another.
using OpenDeviceModule = DeviceModule* (*)(std::uint64_t fingerprint);
inline constexpr const char* open_device_module_name = "reel_open_device_module";

}  // namespace reel::detail
