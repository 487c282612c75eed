#include <cstdlib>
#include <memory>

#include "../../lib/core/device/device_module.h"
#include "../../lib/core/storage.h"
#include "../../lib/kernels/optimise.h"
#include "capture.h"
#include "constants.h"
#include "cuda_kernels.h"
#include "header_fingerprint.h"
#include "of_queue.h"
#include "ranges.h"
#include "runtime.h"

// The module that libreel opens.

namespace reel::detail::inline REEL_TARGET {
namespace {

class CudaModule final : public DeviceModule {
 public:
  CudaModule() : count_(driver_device_count(absence_)) {
    // cuBLAS, which cuDNN's recurrent layers use, else shares a workspace among streams, and results differ from run to
    // run. Source: NVIDIA's cuBLAS documentation, "Results Reproducibility".
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    fill_device_kernels(kernels_);
    fill_device_optimisers(optimiser_kernels_);
  }

  int device_count() const override { return count_; }
  const std::string& absence() const override { return absence_; }
  const KernelTable& kernels() const override { return kernels_; }
  const OptimiserKernels& optimiser_kernels() const override { return optimiser_kernels_; }

  void enter(int device) override { enter_device_of_thread(device); }
  CUstream_st* stream(int device) override { return enter_device_of_thread(device).stream; }
  void prepare(const Call& call) override { prepare_operands(call); }
  void prepare(const Body& x, bool writes) override { prepare_operand(x, writes); }

  DeviceBlock* allocate(int device, std::size_t bytes, const char* op, Location where) override {
    return allocate_block(device, bytes, op, where);
  }
  void free(DeviceBlock* block) noexcept override { free_block(block); }
  void* constant(int device, DType dtype, double number, std::int64_t integer) override {
    bool records = enter_device_of_thread(device).capture;
    return of_current_queue<Constants>().find(dtype, number, integer, records ? nullptr : &kernels_);
  }

  void copy_in(int device, void* to, const void* from, std::size_t bytes) override {
    enter(device);
    copy_to_device(to, from, bytes);
  }
  void copy_out(int device, void* to, const void* from, std::size_t bytes) override {
    enter(device);
    copy_to_host(to, from, bytes, "the values of a tensor");
  }
  // `prepare` has made the queue wait for the values.
  void copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes) override {
    enter(to_device);
    driver_copy_between(to_device, to, from_device, from, bytes, current_stream());
  }
  void synchronise(int device) override {
    Queue& queue = enter_device_of_thread(device);
    wait_for_queue(queue, "all that is queued");
    // Another thread may begin to record a graph meanwhile, and to wait for its stream would end that.
    for (Queue* other : queues_of(device))
      if (other != &queue) other->finish();
  }

  std::uint32_t record_fingerprint(const Body& x) override { return record_fingerprint_of(x); }
  void check_values(std::uint32_t recorded, const Body& x, const char* op, Location where, int result) override {
    check_values_of(recorded, x, op, where, result);
  }

  int begin_range(const char* name) noexcept override { return detail::begin_range(name); }
  void end_range() noexcept override { detail::end_range(); }

  DeviceDescription describe(int device) const override { return driver_properties(device); }
  DeviceMemory memory(int device) const override {
    OnDevice here(device);
    DriverMemory found = driver_memory();
    const DeviceAccount& account = account_of(device);
    return {account.used.load(), account.peak.load(), account.reserved.load(),
            found.free,          found.total,         account.limit.load()};
  }
  void set_memory_limit(int device, std::size_t bytes) override { account_of(device).limit = bytes; }
  void reserve_memory(int device, std::size_t bytes, Location where) override { reserve_block(device, bytes, where); }
  void release_memory(int device) override {
    enter(device);
    release_caches(device);
  }
  void reset_peak_memory(int device) override {
    DeviceAccount& account = account_of(device);
    account.peak = account.used.load();
  }

  std::unique_ptr<RecordedGraph> record(int device, Generator& generator) override {
    return std::make_unique<Capture>(enter_device_of_thread(device), generator);
  }
  bool records() const noexcept override { return current_queue_or_null() && current_queue().capture; }
  bool has_recorded(const Body& x) const noexcept override {
    const DeviceBlock* block = x.device.type == Device::Type::cpu ? nullptr : x.storage->device_block();
    return block && static_cast<const Block*>(block)->pool == current_queue_or_null()->pool;
  }
  const void* recorded_numbers(const void* numbers, std::size_t bytes) override {
    return current_queue().capture.load()->numbers(numbers, bytes);
  }
  void before_launch(std::function<void()> f) override { current_queue().capture.load()->before_launch(std::move(f)); }

 private:
  std::string absence_;
  int count_;
  KernelTable kernels_{};
  OptimiserKernels optimiser_kernels_{};
};

}  // namespace
}  // namespace reel::detail::inline REEL_TARGET

extern "C" [[gnu::visibility("default")]] reel::detail::DeviceModule* reel_open_device_module(
    std::uint64_t fingerprint) {
  using namespace reel::detail;
  if (fingerprint != header_fingerprint) return nullptr;
  static auto& module = *std::make_unique<CudaModule>().release();
  return &module;
}
