#include "device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace reel_test::stand_in {

const Description& description() {
  static const Description h100{"NVIDIA H100 80GB HBM3",
                                9,
                                0,
                                132,
                                std::size_t{79} << 30,
                                49152,
                                233472,
                                232448,
                                52428800,
                                1980000,
                                2619000,
                                5120};
  static const Description a100{"NVIDIA A100-SXM4-80GB",
                                8,
                                0,
                                108,
                                std::size_t{79} << 30,
                                49152,
                                167936,
                                166912,
                                41943040,
                                1410000,
                                1593000,
                                5120};
  static const char* name = std::getenv("REEL_STAND_IN");
  return name && std::string_view(name) == "a100" ? a100 : h100;
}

std::string description_for_cudnn() {
  const Description& d = description();
  return fmt::format(
      R"({{"deviceName":"{}","cudaDeviceId":0,"deviceVer":{},"driverVer":13000,)"
      R"("maxGridSize":[{},{},{}],"maxBlockSize":[1024,1024,64],"regsPerBlock":{},"multiProcessorCount":{},)"
      R"("smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},"warpSize":32,"maxSharedMemoryPerBlock":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":{},"pciDeviceId":0,)"
      R"("maxCtasPerSM":{},"maxThreadsPerBlock":{},"maxThreadsPerSM":{},"isTccDriver":0,"supportCoopLaunch":1,)"
      R"("totalGlobalMem":{}}})",
      d.name, d.major * 100 + d.minor * 10, most_grid_x, most_grid_y, most_grid_y, registers_of_block,
      d.multiprocessors, d.clock, d.memory_clock, d.l2_cache, d.shared_of_block, d.most_shared_of_block,
      registers_of_block, blocks_of_multiprocessor, most_threads_of_block, threads_of_multiprocessor, d.memory);
}

}  // namespace reel_test::stand_in
