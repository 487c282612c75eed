#include "device_module.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>

#include "../op_error.h"
#include "header_fingerprint.h"
#include "linkage.h"

namespace reel::detail {
namespace {

// Static variables that outlive all others, and whose access allocates no memory.
constinit std::atomic<DeviceModule*> opened = nullptr;

std::string& absence() {
  static auto& text = *std::make_unique<std::string>().release();
  return text;
}

// The module's path: beside this library, or that of the environment variable REEL_CUDA_MODULE.
std::filesystem::path module_path() {
  if (const char* named = std::getenv("REEL_CUDA_MODULE"); named && *named) return named;
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&device_module_absence), &here) || !here.dli_fname)
    return "libreel_cuda.so";
  std::filesystem::path folder = std::filesystem::path(here.dli_fname).parent_path().lexically_normal();
  // In a build folder each library is in a folder of its own.
  std::filesystem::path built = folder.parent_path() / "cuda" / "libreel_cuda.so";
  std::filesystem::path installed = folder / "libreel_cuda.so";
  std::error_code ignored;
  return !std::filesystem::exists(installed, ignored) && std::filesystem::exists(built, ignored) ? built : installed;
}

// The module is never closed: CUDA's libraries must not be unloaded, and static tensors outlive everything.
DeviceModule* open_module(std::string& absence) {
  // The module would bring libreel.so with it: a second library, with tapes and tensors of its own.
  if (linked_statically) {
    absence = "the CUDA backend works with libreel.so only, and this program is linked with libreel.a";
    return nullptr;
  }
  std::filesystem::path path = module_path();
  std::error_code ignored;
  if (path.has_parent_path() && !std::filesystem::exists(path, ignored)) {
    absence = "this build has no CUDA backend (there is no " + path.string() + ")";
    return nullptr;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    absence = std::string("the CUDA backend could not be loaded: ") + (reason ? reason : path.string());
    return nullptr;
  }
  auto open = reinterpret_cast<OpenDeviceModule>(dlsym(library, open_device_module_name));
  DeviceModule* module = open ? open(header_fingerprint) : nullptr;
  if (!module) absence = path.string() + " belongs to another build of reel; build both together";
  return module;
}

void open_once() {
  static std::once_flag flag;
  std::call_once(flag, [] {
    DeviceModule* module = open_module(absence());
    opened.store(module, std::memory_order_release);
  });
}

}  // namespace

DeviceModule* opened_device_module() noexcept { return opened.load(std::memory_order_acquire); }

const std::string& device_module_absence() {
  open_once();
  return absence();
}

DeviceModule& device_module() {
  if (DeviceModule* module = opened_device_module()) [[likely]]
    return *module;
  open_once();
  if (DeviceModule* module = opened_device_module()) return *module;
  throw DeviceError("there is no CUDA device: " + absence(), context().call_site({}));
}

DeviceModule& module_of_device(const char* op, Device device, Location where) {
  if (device == cpu) fail<DeviceError>(op, where, "takes a GPU, not the CPU");
  const std::string& absence = device_module_absence();
  if (!absence.empty()) fail<DeviceError>(op, where, "there is no {}: {}", to_string(device), absence);
  DeviceModule& module = device_module();
  context().set(Context::on_device, true);
  int count = module.device_count();
  if (device.index < count) [[likely]]
    return module;
  if (count == 0) fail<DeviceError>(op, where, "there is no {}: {}", to_string(device), module.absence());
  fail<DeviceError>(op, where, "there is no {}, but {}", to_string(device),
                    count == 1 ? "cuda:0 alone" : fmt::format("cuda:0 to cuda:{}", count - 1));
}

void prepare_on_device(const Body& x, bool writes) {
  if (x.device.type == Device::Type::cpu) return;
  context().set(Context::on_device, true);
  device_module().prepare(x, writes);
}

DeviceModule* recording_module() noexcept {
  DeviceModule* module = opened_device_module();
  return module && module->records() ? module : nullptr;
}

void notify_wait(Device device, const char* reason) {
  if (WaitListener* listener = context().wait_listener) listener->waits(device, reason);
}

}  // namespace reel::detail
