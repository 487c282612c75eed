#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <reel/detail/immovable.h>
#include <reel/dtype.h>

#include "mpi.h"

namespace reel::detail {

/// Memory of each rank that all ranks of one machine see, so that they add up their elements without messages.
class SharedMemory : Immovable {
 public:
  /// Memory of `bytes` zeros for each rank of a communicator, all of whose ranks call it. Null on all of them where they
  /// are not on one machine, or the system refuses the memory.
  static std::shared_ptr<SharedMemory> make(MPI_Comm communicator, std::size_t bytes);
  /// Takes the memory from this rank; others keep theirs.
  ~SharedMemory();

  /// The memory of this rank.
  std::byte* own() const { return of_rank(rank_); }
  /// The bytes of each rank.
  std::size_t bytes() const { return bytes_; }
  /// This rank has written its elements, f32 or f64, whose sums over the ranks are to replace them.
  void begin(DType dtype);
  /// Adds up this rank's part of the elements, in the order of the ranks, once all have written theirs, and returns whether
  /// all sums are in place; also if nothing has begun. Does not wait.
  bool proceed();

 private:
  // How many times ranks have written their elements, and added up their parts.
  struct Counts {
    std::atomic<std::int64_t> written, added;
  };

  SharedMemory(int rank, int size, std::size_t bytes);
  bool map(int file);
  std::size_t mapped_bytes() const { return stride_ * static_cast<std::size_t>(size_) + page; }
  Counts& counts() const { return *reinterpret_cast<Counts*>(mapped_); }
  std::byte* of_rank(int rank) const { return mapped_ + page + static_cast<std::size_t>(rank) * stride_; }
  template <class T>
  void add_part() const;

  static constexpr std::size_t page = 4096;

  int rank_, size_;
  std::size_t bytes_, stride_;
  std::byte* mapped_ = nullptr;
  DType dtype_ = DType::f32;
  std::int64_t sums_ = 0;  // begun by this rank
  bool added_ = true;
};

}  // namespace reel::detail
