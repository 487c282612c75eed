#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "../../cuda/device/launch.h"

// Kernels whose threads conflict, or do not, on the emulated device under the thread sanitizer: conflicts.py runs them by name.

namespace reel::detail::inline REEL_TARGET {

Stream current_stream() { return nullptr; }
int multiprocessors() { return 2; }
void give_to_stream(Stream, std::function<void()> work) { work(); }
DeviceAccess::DeviceAccess() = default;
DeviceAccess::~DeviceAccess() = default;

namespace {

std::array<int, 4096> memory;

// Each thread reads what its neighbour has written to shared memory, in the phase after, or in the same.
template <bool waits>
struct Exchange {
  int* to;

  template <class Group>
  void operator()(Group& group) const {
    int* shared = group.template shared<int>(group.size());
    auto neighbour = [&](int thread) {
      to[group.index() * group.size() + thread] = shared[(thread + 1) % group.size()];
    };
    group.each([&](int thread) {
      shared[thread] = thread;
      if constexpr (!waits) neighbour(thread);
    });
    if constexpr (waits) group.each(neighbour);
  }
};

// All groups write one element, or each its own.
template <bool alike>
struct Store {
  int* to;

  template <class Group>
  void operator()(Group& group) const {
    group.each([&](int thread) {
      if (thread == 0) to[alike ? 0 : group.index()] = thread;
    });
  }
};

const std::map<std::string, std::function<void()>> kernels{
    {"no conflict: a phase between write and read",
     [] { for_each_group(8, 128, 128 * sizeof(int), Exchange<true>{memory.data()}); }},
    {"no conflict: an element for each group", [] { for_each_group(8, 32, 0, Store<false>{memory.data()}); }},
    {"no conflict: an element for each thread",
     [] { for_each(1000, [to = memory.data()](std::int64_t i) { to[i] = 1; }); }},
    {"no conflict: launches one after the other",
     [] {
       for (int k = 0; k < 3; ++k) for_each(1000, [k, to = memory.data()](std::int64_t i) { to[(i + k) % 1000] = k; });
     }},
    {"conflict: write and read in one phase",
     [] { for_each_group(1, 128, 128 * sizeof(int), Exchange<false>{memory.data()}); }},
    {"conflict: one element for all groups", [] { for_each_group(8, 32, 0, Store<true>{memory.data()}); }},
    {"conflict: one element for two threads",
     [] { for_each(1000, [to = memory.data()](std::int64_t i) { to[i / 2] = 1; }); }},
};

}  // namespace
}  // namespace reel::detail::inline REEL_TARGET

int main(int count, char** arguments) {
  if (count != 2) {
    for (const auto& [name, run] : reel::detail::kernels) std::puts(name.c_str());
    return 0;
  }
  reel::detail::kernels.at(arguments[1])();
}
