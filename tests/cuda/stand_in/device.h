#pragma once

#include <cstddef>
#include <string>

// The GPUs that the stand-in describes.

namespace reel_test::stand_in {

/// Source: NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities", and the data sheets of A100 and H100.
struct Description {
  const char* name;
  int major, minor, multiprocessors;
  std::size_t memory;
  int shared_of_block, shared_of_multiprocessor, most_shared_of_block, l2_cache, clock, memory_clock, bus_width;
};

constexpr int device_count = 2, most_threads_of_block = 1024, registers_of_block = 65536,
              threads_of_multiprocessor = 2048, blocks_of_multiprocessor = 32;
constexpr unsigned most_grid_x = 2147483647, most_grid_y = 65535;

/// The device that the environment variable REEL_STAND_IN names: h100, which is the default, or a100.
const Description& description();

/// The description in the form that cuDNN reads.
std::string description_for_cudnn();

}  // namespace reel_test::stand_in
