#include "floating_point_mode.h"

#include <cstdint>

#include <reel/threads.h>

namespace reel {
namespace detail {
namespace {

#if defined(__x86_64__)
constexpr FloatingPointMode sticky = 0x3f;             // flags of exceptions that have occurred
constexpr FloatingPointMode flush_denormals = 0x8040;  // of results, and of operands
#elif defined(__aarch64__)
constexpr FloatingPointMode flush_denormals = 1 << 24;  // of results and of operands
#else
constexpr FloatingPointMode flush_denormals = 0;
#endif

}  // namespace

#if defined(__x86_64__)
FloatingPointMode floating_point_mode() { return __builtin_ia32_stmxcsr() & ~sticky; }
void set_floating_point_mode(FloatingPointMode mode) { __builtin_ia32_ldmxcsr(mode); }
#elif defined(__aarch64__)
// The upper half of the register is reserved; exceptions that have occurred are in another one.
FloatingPointMode floating_point_mode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return static_cast<FloatingPointMode>(mode);
}
void set_floating_point_mode(FloatingPointMode mode) {
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{mode}) : "memory");
}
#else
FloatingPointMode floating_point_mode() { return 0; }
void set_floating_point_mode(FloatingPointMode) {}
#endif

}  // namespace detail

void set_flush_denormals(bool flush) {
  detail::FloatingPointMode mode = detail::floating_point_mode() & ~detail::flush_denormals;
  detail::set_floating_point_mode(flush ? mode | detail::flush_denormals : mode);
}

bool flushes_denormals() { return detail::floating_point_mode() & detail::flush_denormals; }

}  // namespace reel
