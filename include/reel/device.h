#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace reel {

/// Where a tensor's elements live and its ops run.
struct Device {
  enum class Type : std::uint8_t { cpu, cuda };
  Type type = Type::cpu;
  std::uint8_t index = 0;
  friend bool operator==(Device a, Device b) {
    return std::bit_cast<std::uint16_t>(a) == std::bit_cast<std::uint16_t>(b);
  }
};

inline constexpr Device cpu{};

/// "cpu", "cuda:1".
std::string to_string(Device device);

/// Where tensors are made that are given no device, on this thread: the CPU, or that of the innermost DeviceGuard.
Device default_device();

/// While it lives, tensors are made on a device unless they are given another one: models that are built then have their
/// parameters there. On the stack only.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device before_;
};

/// Memory of this thread's tensors.
struct MemoryStatistics {
  std::int64_t live_tensors;   ///< tensor bodies in use
  std::int64_t live_storages;  ///< storages in use
  std::size_t live_bytes;      ///< bytes in use by both
  std::size_t peak_bytes;      ///< the most ever held, in use or for reuse
  std::size_t cached_bytes;    ///< bytes kept for reuse
};
MemoryStatistics memory_statistics();

/// The most bytes this thread keeps for reuse after tensors are freed; default 1 GiB. What is over it goes back to the
/// system as it is freed.
void set_memory_cache_limit(std::size_t bytes);

/// Gives all memory kept for reuse by this thread back to the system.
void release_memory_cache();

}  // namespace reel
