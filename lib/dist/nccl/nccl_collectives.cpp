#include <cuda_runtime_api.h>
#include <nccl.h>

#include <utility>

#include <reel/cuda.h>
#include <reel/device.h>
#include <reel/error.h>

#include "../../core/fail.h"
#include "../../core/storage.h"
#include "../nccl_module.h"

namespace reel::detail {

namespace {

void check(ncclResult_t result) {
  if (result != ncclSuccess) fail<DeviceError>("dist::Group", {}, "NCCL says: {}", ncclGetErrorString(result));
}

void check(cudaError_t result) {
  if (result != cudaSuccess) fail<DeviceError>("dist::Group", {}, "CUDA says: {}", cudaGetErrorString(result));
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    case DType::i32: return ncclInt32;
    case DType::i64: return ncclInt64;
    case DType::i8: return ncclInt8;
    case DType::u8:
    case DType::boolean: return ncclUint8;
    default: break;
  }
  fail<DTypeError>("dist::Group", {}, "{} cannot be exchanged between GPUs; convert it first", name_of(dtype));
}

// One GPU of each rank, and a stream of its own: what reel has queued is finished before, and the exchange after.
class NcclCollectives : public DeviceCollectives, Immovable {
 public:
  NcclCollectives(int rank, int size, const BroadcastBytes& broadcast) {
    ncclUniqueId id{};
    if (rank == 0) check(ncclGetUniqueId(&id));
    broadcast(&id, sizeof id);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(ncclCommInitRank(&communicator_, size, id, rank));
  }
  ~NcclCollectives() override {
    ncclCommDestroy(communicator_);
    cudaStreamDestroy(stream_);
  }

  void all_reduce(Tensor& x) override {
    exchange(x, [&](void* data, std::size_t count, ncclDataType_t type) {
      check(ncclAllReduce(data, data, count, type, ncclSum, communicator_, stream_));
    });
  }
  void broadcast(Tensor& x, int root) override {
    exchange(x, [&](void* data, std::size_t count, ncclDataType_t type) {
      check(ncclBroadcast(data, data, count, type, root, communicator_, stream_));
    });
  }

 private:
  template <class F>
  void exchange(Tensor& x, F f) {
    cuda::synchronize();
    x.body().storage->overwritten({});
    f(x.body().data, static_cast<std::size_t>(x.numel()), type_of(x.dtype()));
    check(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream_ = nullptr;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] reel::detail::DeviceCollectives* reel_make_nccl_collectives(
    int rank, int size, const reel::detail::BroadcastBytes& broadcast) {
  return new reel::detail::NcclCollectives(rank, size, broadcast);
}
