#include <reel/cuda.h>
#include <reel/cuda/kernel.h>

#include <charconv>

#include "../core/device/device_module.h"
#include "../core/op_error.h"
#include "../core/tensor_float.h"

namespace reel {

using namespace detail;

namespace {

// The module; null if there is none.
DeviceModule* module_if_any() { return device_module_absence().empty() ? &device_module() : nullptr; }

Device cuda_device(int index) { return {Device::Type::cuda, static_cast<std::uint8_t>(index)}; }

Device least_loaded(Location where) {
  int count = cuda::device_count();
  if (count == 0) fail<DeviceError>("parse_device", where, "there is no GPU for 'cuda:auto': {}", cuda::why_not());
  Device best = cuda_device(0);
  if (count == 1) return best;  // querying its memory would initialise it
  std::size_t most = 0;
  for (int i = 0; i < count; ++i)
    if (std::size_t free = device_module().memory(i).free; free > most) {
      most = free;
      best = cuda_device(i);
    }
  return best;
}

}  // namespace

Device parse_device(std::string_view name, Location where) {
  if (name == "cpu") return cpu;
  if (name == "cuda:auto") return least_loaded(where);
  constexpr std::string_view prefix = "cuda:";
  int index = name == "cuda" ? 0 : -1;
  if (name.starts_with(prefix)) {
    const char* end = name.data() + name.size();
    auto read = std::from_chars(name.data() + prefix.size(), end, index);
    if (read.ec != std::errc() || read.ptr != end) index = -1;
  }
  if (index < 0 || index > 255)
    fail<DeviceError>("parse_device", where,
                      "'{}' is no device; there are \"cpu\", \"cuda:0\" and so on, and \"cuda:auto\"", name);
  static_cast<void>(module_of_device("parse_device", cuda_device(index), where));
  return cuda_device(index);
}

namespace cuda {

bool is_available() { return device_count() > 0; }

std::string why_not() {
  if (DeviceModule* module = module_if_any()) return module->device_count() > 0 ? "" : module->absence();
  return device_module_absence();
}

int device_count() {
  DeviceModule* module = module_if_any();
  return module ? module->device_count() : 0;
}

Device device(int index, Location where) {
  if (index < 0 || index > 255) fail<DeviceError>("cuda::device", where, "there is no GPU {}", index);
  static_cast<void>(module_of_device("cuda::device", cuda_device(index), where));
  return cuda_device(index);
}

Properties properties(Device device, Location where) {
  DeviceDescription found = module_of_device("cuda::properties", device, where).describe(device.index);
  return {std::move(found.name), found.bytes, found.multiprocessors, found.major, found.minor};
}

void synchronize(Device device, Location where) {
  DeviceModule& module = module_of_device("cuda::synchronize", device, where);
  CallerScope caller(where);
  module.synchronise(device.index);
}

void synchronize(Location where) {
  for (int i = 0; i < device_count(); ++i) synchronize(cuda_device(i), where);
}

MemoryStatistics memory_statistics(Device device, Location where) {
  DeviceMemory found = module_of_device("cuda::memory_statistics", device, where).memory(device.index);
  return {found.used, found.peak, found.reserved, found.free, found.total};
}

void reset_peak_memory(Device device, Location where) {
  module_of_device("cuda::reset_peak_memory", device, where).reset_peak_memory(device.index);
}

void set_memory_limit(Device device, std::size_t bytes, Location where) {
  module_of_device("cuda::set_memory_limit", device, where).set_memory_limit(device.index, bytes);
}

void reserve_memory(Device device, std::size_t bytes, Location where) {
  module_of_device("cuda::reserve_memory", device, where).reserve_memory(device.index, bytes, where);
}

void release_memory_cache(Device device, Location where) {
  module_of_device("cuda::release_memory_cache", device, where).release_memory(device.index);
}

Stream stream(Device device, Location where) {
  DeviceModule& module = module_of_device("cuda::stream", device, where);
  CallerScope caller(where);
  return module.stream(device.index);
}

void allow_tf32(bool allowed) { detail::allow_tf32(allowed); }
bool tf32_is_allowed() { return may_use_tf32(); }

}  // namespace cuda
}  // namespace reel
