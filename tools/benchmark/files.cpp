#include <fcntl.h>
#include <reel/reel.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "cases.h"

namespace reel_bench {

namespace {

using namespace reel;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t tensor_count = 16, side = 4096;  // 1 GiB of f32
constexpr int element_count = tensor_count * side * side;

// A file of tensors, which is removed at the end.
class LargeFile {
 public:
  LargeFile() : path_(std::filesystem::temp_directory_path() / ("reel_bench_" + std::to_string(getpid()))) {
    std::vector<NamedTensor> tensors;
    for (std::int64_t i = 0; i < tensor_count; ++i) tensors.push_back({std::to_string(i), rand({side, side})});
    io::save(path_, tensors);
  }
  ~LargeFile() { std::filesystem::remove(path_); }
  LargeFile(const LargeFile&) = delete;
  LargeFile& operator=(const LargeFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Instructions are counted inside of the functions that are named measured_…
[[gnu::noinline]] float measured_loop(const float* x) {
  constexpr int lanes = 128;
  float sums[lanes] = {}, sum = 0;
  for (std::int64_t i = 0; i < element_count; i += lanes)
    for (int j = 0; j < lanes; ++j) sums[j] += x[i + j];
  for (float one : sums) sum += one;
  return sum;
}

[[gnu::noinline]] double measured_sum(const std::string& path) {
  io::TensorFile file = io::open(path);
  double total = 0;
  for (const std::string& name : file.names()) total += sum(file[name]).item();
  return total;
}

float mapped_loop(const std::string& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto size = static_cast<std::size_t>(lseek(descriptor, 0, SEEK_END));
  void* begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (begin == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  std::size_t header = size - element_count * sizeof(float);
  float sum = measured_loop(reinterpret_cast<const float*>(static_cast<const char*>(begin) + header));
  munmap(begin, size);
  return sum;
}

// The file is written by the case that runs first.
template <class F>
std::function<double()> over_file(const std::shared_ptr<std::unique_ptr<LargeFile>>& file, F f) {
  return [=, result = std::make_shared<double>(0)] {
    if (!*file) *file = std::make_unique<LargeFile>();
    auto start = Clock::now();
    *result += f((*file)->path());
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
}

}  // namespace

// The pages are in the system's cache; the time of a plain loop over them depends on the machine.
std::vector<Case> files() {
  auto file = std::make_shared<std::unique_ptr<LargeFile>>();
  return {{"files", "plain_loop_over_mapped_bytes", element_count, 0, over_file(file, mapped_loop)},
          {"files", "open_and_sum", element_count, 1.3, over_file(file, measured_sum), "plain_loop_over_mapped_bytes"}};
}

}  // namespace reel_bench
