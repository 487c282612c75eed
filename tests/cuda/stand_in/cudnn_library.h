#pragma once

#include <cudnn.h>
#include <dlfcn.h>

#include "record.h"

// The functions of the cuDNN that is installed. It cannot make a handle without a GPU, but it describes, and plans, without.

struct cudnnContext {
  int device;
  cudaStream_t stream = nullptr;
};

namespace reel_test::stand_in {

/// The library's own function of that name.
template <class F>
F* real_cudnn(const char* name) {
  static void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found) violation("cuDNN has no {}", name);
  return reinterpret_cast<F*>(found);
}

}  // namespace reel_test::stand_in
