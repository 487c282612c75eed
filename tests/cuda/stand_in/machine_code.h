#pragma once

#include <string>

#include "cubin.h"

// Properties of a kernel's instructions. probe.cu is compiled beside the kernels to show that they are recognised.

namespace reel_test::stand_in {

/// True if the kernel adds floating-point numbers atomically, in an order that differs from run to run.
bool adds_atomically(const Kernel& kernel);

/// The bytes of the widest access to global memory by one thread.
int widest_access(const Kernel& kernel);

/// The bytes of the widest load from global memory, and of the widest store to it, by one thread.
int widest_load(const Kernel& kernel);
int widest_store(const Kernel& kernel);

}  // namespace reel_test::stand_in
