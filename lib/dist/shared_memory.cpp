#include "shared_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace reel::detail {

namespace {

class File : Immovable {
 public:
  explicit File(int number) : number_(number) {}
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

bool on_one_machine(MPI_Comm communicator, int size) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  if (MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours) != MPI_SUCCESS)
    return false;
  int count = 0;
  MPI_Comm_size(neighbours, &count);
  MPI_Comm_free(&neighbours);
  return count == size;
}

bool all_agree(MPI_Comm communicator, bool own) {
  int agreed = own ? 1 : 0;
  return MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, communicator) == MPI_SUCCESS && agreed == 1;
}

// The first rank's file of memory without a name, of `bytes`, which are reserved; −1: refused.
int new_file(std::size_t bytes) {
  int file = ::memfd_create("reel gradients", MFD_CLOEXEC);
  if (file >= 0 && ::posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) {
    ::close(file);
    return -1;
  }
  return file;
}

}  // namespace

SharedMemory::SharedMemory(int rank, int size, std::size_t bytes)
    : rank_(rank), size_(size), bytes_(bytes), stride_((bytes + page - 1) / page * page) {}

SharedMemory::~SharedMemory() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes());
}

bool SharedMemory::map(int file) {
  if (file < 0) return false;
  void* mapped = ::mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return false;
  mapped_ = static_cast<std::byte*>(mapped);
  return true;
}

std::shared_ptr<SharedMemory> SharedMemory::make(MPI_Comm communicator, std::size_t bytes) {
  int rank = 0, size = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  if (bytes == 0 || !on_one_machine(communicator, size)) return nullptr;
  std::shared_ptr<SharedMemory> made(new SharedMemory(rank, size, bytes));
  // Process, file, and a number by which the others know that it is this memory: they may number processes otherwise.
  std::array<std::int64_t, 3> told{};
  File first(rank == 0 ? new_file(made->mapped_bytes()) : -1);
  if (rank == 0 && made->map(first.number())) {
    std::random_device random;
    told = {::getpid(), first.number(), static_cast<std::int64_t>(random()) + 1};
    std::memcpy(made->mapped_, &told[2], sizeof told[2]);
  }
  if (MPI_Bcast(told.data(), 3, MPI_INT64_T, 0, communicator) != MPI_SUCCESS) return nullptr;
  bool mapped = made->mapped_ != nullptr;
  if (rank != 0 && told[2] != 0) {
    File opened(::open(fmt::format("/proc/{}/fd/{}", told[0], told[1]).c_str(), O_RDWR | O_CLOEXEC));
    auto expected = static_cast<off_t>(made->mapped_bytes());
    mapped = opened.number() >= 0 && ::lseek(opened.number(), 0, SEEK_END) == expected && made->map(opened.number()) &&
             std::memcmp(made->mapped_, &told[2], sizeof told[2]) == 0;
  }
  if (!all_agree(communicator, mapped)) return nullptr;
  if (rank == 0) std::construct_at(reinterpret_cast<Counts*>(made->mapped_));
  return all_agree(communicator, true) ? made : nullptr;  // no rank counts before that
}

template <class T>
void SharedMemory::add_part() const {
  constexpr std::size_t at_once = 1024;  // sums that stay in the first-level cache
  std::array<T, at_once> sums;
  std::size_t elements = bytes_ / sizeof(T), blocks = (elements + at_once - 1) / at_once;
  auto ranks = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  for (std::size_t block = blocks * own / ranks; block < blocks * (own + 1) / ranks; ++block) {
    std::size_t begin = block * at_once, count = std::min(at_once, elements - begin);
    std::memcpy(sums.data(), of_rank(0) + begin * sizeof(T), count * sizeof(T));
    for (int rank = 1; rank < size_; ++rank) {
      const T* more = reinterpret_cast<const T*>(of_rank(rank)) + begin;
      for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
    }
    for (int rank = 0; rank < size_; ++rank)
      std::memcpy(of_rank(rank) + begin * sizeof(T), sums.data(), count * sizeof(T));
  }
}

void SharedMemory::begin(DType dtype) {
  dtype_ = dtype;
  added_ = false;
  ++sums_;
  counts().written.fetch_add(1, std::memory_order_release);
}

bool SharedMemory::proceed() {
  std::int64_t all = sums_ * size_;
  if (!added_) {
    if (counts().written.load(std::memory_order_acquire) < all) return false;
    if (dtype_ == DType::f64)
      add_part<double>();
    else
      add_part<float>();
    added_ = true;
    counts().added.fetch_add(1, std::memory_order_release);
  }
  return counts().added.load(std::memory_order_acquire) >= all;
}

}  // namespace reel::detail
