// Takes the place of NVIDIA's profilers: prints the ranges that a program begins and ends. NVTX loads it from the
// environment variable NVTX_INJECTION64_PATH.

#include <cstdio>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace {

thread_local int level = 0;

int begin(const char* name) {
  std::printf("%s%s\n", std::string(static_cast<std::size_t>(2 * level), ' ').c_str(), name);
  return level++;
}

int end() {
  if (--level < 0) std::puts("a range ends that has not begun");
  return level;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(find(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(begin);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(end);
  return 1;
}
