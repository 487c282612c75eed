#include "device_collectives.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "nccl_module.h"

namespace reel::detail {

namespace {

// The module beside this library.
std::string module_path() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&open_device_collectives), &here) || !here.dli_fname) return {};
  return std::filesystem::path(here.dli_fname).parent_path() / "libreel_nccl.so";
}

}  // namespace

std::unique_ptr<DeviceCollectives> open_device_collectives(int rank, int size, const BroadcastBytes& broadcast) {
  // Never closed: it has started threads.
  void* module = dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = module ? dlsym(module, nccl_entry_point) : nullptr;
  // Rank 0 decides, since all of them have to go one way.
  unsigned char exists = found != nullptr;
  broadcast(&exists, 1);
  if (!exists || !found) return nullptr;
  return std::unique_ptr<DeviceCollectives>(reinterpret_cast<NcclEntryPoint*>(found)(rank, size, broadcast));
}

}  // namespace reel::detail
