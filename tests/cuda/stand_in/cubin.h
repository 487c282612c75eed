#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Reads what nvcc says of a kernel from the machine code that it embeds in a library.
// Sources: the ELF specification; the sections .nv.info of NVIDIA's cubins, as `cuobjdump -elf` prints them.

namespace reel_test::stand_in {

/// A parameter of a kernel: its place in the parameter block, in bytes.
struct Parameter {
  unsigned offset, bytes;
};

struct Kernel {
  std::string name;
  int architecture = 0;   ///< 90 for sm_90
  int registers = 0;      ///< of a thread
  int static_shared = 0;  ///< bytes of a block
  int stack = 0;  ///< bytes of local memory of a thread: arrays that are indexed by variables, and spilled registers
  int most_threads = 1024;  ///< of a block, as its launch bounds say
  std::vector<Parameter> parameters;
  std::span<const std::byte> code;
};

/// The kernels of an image that was passed to __cudaRegisterFatBinary. Throws: std::runtime_error if it is compressed or damaged.
std::vector<Kernel> kernels_of(const void* fat_binary);

/// The kernels of a shared library's file. Throws: std::runtime_error if it cannot be read. `bytes` keeps the code alive.
std::vector<Kernel> kernels_in_file(const std::string& path, std::vector<std::byte>& bytes);

}  // namespace reel_test::stand_in
