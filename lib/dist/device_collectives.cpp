#include "device_collectives.h"

#include <dlfcn.h>

#include <filesystem>
#include "../core/fail.h"
#include "nccl_module.h"

namespace reel::detail {

namespace {

// Opens the module, which is beside this library, or in a build folder in cuda/. Null if there is none.
void* open_module() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&open_device_collectives), &here) || !here.dli_fname) return nullptr;
  std::filesystem::path folder = std::filesystem::path(here.dli_fname).parent_path();
  for (const std::filesystem::path& path : {folder / "libreel_nccl.so", folder / "../cuda/libreel_nccl.so"})
    if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
  return nullptr;
}

}  // namespace

std::unique_ptr<DeviceCollectives> open_device_collectives(int rank, int size, const BroadcastBytes& broadcast) {
  // Never closed: it has started threads.
  void* module = open_module();
  void* found = module ? dlsym(module, nccl_entry_point) : nullptr;
  // All of them have to go one way.
  unsigned char exists = found != nullptr;
  broadcast(&exists, 1);
  if (exists && !found)
    fail<DeviceError>("dist::Group", {}, "rank {} lacks libreel_nccl.so, which rank 0 has; install it everywhere",
                      rank);
  if (!exists) return nullptr;
  return std::unique_ptr<DeviceCollectives>(reinterpret_cast<NcclEntryPoint*>(found)(rank, size, broadcast));
}

}  // namespace reel::detail
