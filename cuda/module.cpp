#include <memory>

#include "../lib/core/build_fingerprint.h"
#include "../lib/core/device_module.h"
#include "cuda_kernels.h"
#include "runtime.h"

// What libreel opens.

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

class CudaModule final : public DeviceModule {
 public:
  CudaModule() : count_(driver_device_count(absence_)) {
    fill_device_kernels(kernels_);
    fill_device_optimisers(optimiser_kernels_);
  }

  int device_count() const override { return count_; }
  const std::string& absence() const override { return absence_; }
  const KernelTable& kernels() const override { return kernels_; }
  const OptimiserKernels& optimiser_kernels() const override { return optimiser_kernels_; }

  void enter(int device) override { enter_device_of_thread(device); }
  void prepare(const Call&) override {}

  DeviceBlock* allocate(int device, std::size_t bytes, const char* op, Location where) override {
    return allocate_block(device, bytes, op, where);
  }
  void free(DeviceBlock* block) noexcept override { free_block(block); }

  void copy_in(int device, void* to, const void* from, std::size_t bytes) override {
    enter(device);
    copy_to_device(to, from, bytes);
  }
  void copy_out(int device, void* to, const void* from, std::size_t bytes) override {
    enter(device);
    copy_to_host(to, from, bytes, "the values of a tensor");
  }
  void copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes) override {
    enter(from_device);
    driver_wait(current_stream());
    enter(to_device);
    driver_copy_between(to_device, to, from_device, from, bytes, current_stream());
  }
  void synchronise(int device) override {
    enter(device);
    driver_wait(current_stream());
    throw_faults();
  }

 private:
  std::string absence_;
  int count_;
  KernelTable kernels_{};
  OptimiserKernels optimiser_kernels_{};
};

}  // namespace
}  // namespace REEL_TARGET
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] reel::detail::DeviceModule* reel_open_device_module(
    std::uint64_t fingerprint) {
  using namespace reel::detail;
  if (fingerprint != build_fingerprint()) return nullptr;
  static auto& module = *std::make_unique<CudaModule>().release();
  return &module;
}
