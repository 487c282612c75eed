#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <reel/device.h>
#include <reel/location.h>

namespace reel::detail {

struct Call;
struct KernelTable;
struct OptimiserKernels;

/// Elements on a device; what the module keeps about them lies behind it.
struct DeviceBlock {
  void* data;
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

  /// Throws: MemoryError in the name of `op`.
  virtual DeviceBlock* allocate(int device, std::size_t bytes, const char* op, Location where) = 0;
  virtual void free(DeviceBlock* block) noexcept = 0;

  /// From the CPU's memory, which may be overwritten as soon as this returns.
  virtual void copy_in(int device, void* to, const void* from, std::size_t bytes) = 0;
  /// To the CPU's memory. Waits until all that this thread has queued is done. Throws: what kernels have found wrong.
  virtual void copy_out(int device, void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes) = 0;
  /// Waits until all that this thread has queued is done. Throws: what kernels have found wrong.
  virtual void synchronise(int device) = 0;
};

/// The module. Throws: DeviceError where there is none, saying why.
DeviceModule& device_module();
/// Null where it has not been opened.
DeviceModule* opened_device_module() noexcept;
/// Why there is no module; empty where there is one.
const std::string& device_module_absence();

/// The one function that a module exports. It gets the library's `build_fingerprint`, and gives null where its own is
/// another.
using OpenDeviceModule = DeviceModule* (*)(std::uint64_t fingerprint);
inline constexpr const char* open_device_module_name = "reel_open_device_module";

}  // namespace reel::detail
