#include "floating_point_mode.h"

#include <cstdint>
#include <optional>

#include <reel/threads.h>

// GNU OpenMP's parallel region by name, as the other settings of it in onednn.h.
extern "C" void GOMP_parallel(void (*body)(void* data), void* data, unsigned thread_count, unsigned flags);

namespace reel {
namespace detail {
namespace {

#if defined(__x86_64__)
constexpr FloatingPointMode sticky = 0x3f;             // which exceptions have been seen
constexpr FloatingPointMode flush_denormals = 0x8040;  // results, and operands
#else
constexpr FloatingPointMode flush_denormals = 0;
#endif

// The mode that this thread's OpenMP threads are known to have. New ones begin with this thread's.
thread_local std::optional<FloatingPointMode> shared;

}  // namespace

#if defined(__x86_64__)
FloatingPointMode floating_point_mode() { return __builtin_ia32_stmxcsr() & ~sticky; }
void set_floating_point_mode(FloatingPointMode mode) { __builtin_ia32_ldmxcsr(mode); }
#else
FloatingPointMode floating_point_mode() { return 0; }
void set_floating_point_mode(FloatingPointMode) {}
#endif

void share_floating_point_mode() {
  FloatingPointMode mode = floating_point_mode();
  if (shared == mode) return;
  // As a number, not through memory: a thread sanitizer would not see that the region orders its threads.
  GOMP_parallel(
      [](void* data) {
        set_floating_point_mode(static_cast<FloatingPointMode>(reinterpret_cast<std::uintptr_t>(data)));
      },
      reinterpret_cast<void*>(std::uintptr_t{mode}), 0, 0);
  shared = mode;
}

}  // namespace detail

void set_flush_denormals(bool flush) {
  detail::FloatingPointMode mode = detail::floating_point_mode() & ~detail::flush_denormals;
  detail::set_floating_point_mode(flush ? mode | detail::flush_denormals : mode);
  // The program's own regions may have started OpenMP threads in any mode since they were last seen.
  detail::shared.reset();
}

bool flushes_denormals() { return detail::floating_point_mode() & detail::flush_denormals; }

}  // namespace reel
