#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include <reel/detail/immovable.h>

namespace reel {

/// A device: where a tensor's elements are and its ops run.
struct Device {
  /// The kind of a device.
  enum class Type : std::uint8_t { cpu, cuda };
  Type type = Type::cpu;   ///< default: the CPU
  std::uint8_t index = 0;  ///< which of the GPUs, from 0; 0 for the CPU
  /// True if both are one device.
  friend bool operator==(Device a, Device b) {
    return std::bit_cast<std::uint16_t>(a) == std::bit_cast<std::uint16_t>(b);
  }
};

/// The CPU.
inline constexpr Device cpu{};

/// The name of a device: "cpu", "cuda:1".
std::string to_string(Device device);

/// The device on which this thread creates tensors that are given none: the CPU, or that of the innermost DeviceGuard.
Device default_device();

/// While it lives, this thread creates tensors on a device unless they are given another one: models that are built
/// then have their parameters there. Lives on the stack only.
class DeviceGuard : detail::Immovable {
 public:
  /// Makes `device` the default device of this thread.
  explicit DeviceGuard(Device device);
  /// Restores the default device from before.
  ~DeviceGuard();

 private:
  Device before_;
};

/// CPU memory statistics of one thread's tensors.
struct MemoryStatistics {
  std::int64_t live_tensors;   ///< tensor bodies in use
  std::int64_t live_storages;  ///< storages in use
  std::size_t live_bytes;      ///< bytes in use by both
  std::size_t peak_bytes;      ///< the most bytes ever held, in use or for reuse
  std::size_t cached_bytes;    ///< bytes kept for reuse
};
/// CPU memory statistics of this thread's tensors.
MemoryStatistics memory_statistics();

/// Sets the most bytes that this thread keeps for reuse after tensors are freed; default 1 GiB. Memory beyond the limit
/// goes back to the system as it is freed.
void set_memory_cache_limit(std::size_t bytes);

/// Returns all memory that this thread keeps for reuse to the system.
void release_memory_cache();

}  // namespace reel
