#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <reel/random.h>
#include <reel/tensor.h>

#include "../../lib/core/device/device_module.h"
#include "../../lib/kernels/kernel_table.h"
#include "queue.h"

namespace reel::detail::inline REEL_TARGET {

/// A graph: records the work of a queue. Its memory comes from a pool of its own, so that nothing else writes to it
/// between launches; tensors from other pools that it uses are kept alive.
class Capture final : public RecordedGraph, Immovable {
 public:
  Capture(Queue& queue, Generator& generator);
  ~Capture() override;

  void finish() override;
  void launch(std::uint64_t seed, std::uint64_t added_calls) override;

  /// Keeps a tensor whose memory is not the graph's. If `writes`, each launch is treated as an overwrite of it.
  void keep(const Body& x, bool writes);
  /// Keeps an object that holds kernels made by a library.
  void keep(std::shared_ptr<const void> kernels);
  /// The address from which kernels read the seed, and the number of calls to be added. Throws: Error unless it is a
  /// call of the thread's generator since the recording began.
  const std::uint64_t* draws(RandomCall call);
  const void* numbers(const void* numbers, std::size_t bytes);
  void before_launch(std::function<void()> f) { hooks_.push_back(std::move(f)); }

 private:
  struct Numbers {
    const void* source;
    std::size_t bytes;
    DeviceBlock* block;
  };
  void stop() noexcept;
  DeviceBlock* block_for_launches(std::size_t bytes);

  Queue& queue_;
  Generator& generator_;
  std::uint64_t seed_, first_call_;
  std::unique_ptr<MemoryPool> pool_;
  GraphExecution execution_ = nullptr;
  struct Kept {
    Tensor tensor;
    bool written;
  };
  std::vector<Kept> kept_;
  std::vector<std::shared_ptr<const void>> kernels_;
  std::vector<Numbers> numbers_;
  DeviceBlock* draws_ = nullptr;
  std::vector<std::function<void()>> hooks_;
  bool recording_ = true, launched_ = false;
};

}  // namespace reel::detail::inline REEL_TARGET
