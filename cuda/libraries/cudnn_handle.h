#pragma once

#include <cudnn.h>

#include <string>
#include <utility>

#include <reel/error.h>

#include "../../lib/core/context.h"
#include "../device/device.h"

// Common parts of the code that uses cuDNN.

namespace reel::detail::inline REEL_TARGET {

/// Checks cuDNN's status. Throws: DeviceError.
inline void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuDNN: ") + call + " gave \"" + cudnnGetErrorString(status) + '"',
                    context().call_site({}));
}

class CudnnHandle : Immovable {
 public:
  CudnnHandle() { check_cudnn(cudnnCreate(&handle_), "cudnnCreate"); }
  ~CudnnHandle() { cudnnDestroy(handle_); }

  cudnnHandle_t on_stream() const {
    check_cudnn(cudnnSetStream(handle_, current_stream()), "cudnnSetStream");
    return handle_;
  }

 private:
  cudnnHandle_t handle_;
};

}  // namespace reel::detail::inline REEL_TARGET
