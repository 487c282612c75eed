#include "failing_allocator.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace reel_test {
namespace {

constexpr long none = LONG_MAX;
std::atomic<long> counted = 0, first_to_fail = none;
std::atomic<Fault> kind = Fault::once;
std::atomic<bool> failed = false;
thread_local constinit int uncounted __attribute__((tls_model("initial-exec"))) = 0;

// The address range of a loaded object's code.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool contains(const void* address) const {
    auto place = reinterpret_cast<std::uintptr_t>(address);
    return place >= begin && place < end;
  }
};

// GNU OpenMP ends the process if it gets no memory, and the tests themselves do not handle that: allocations of these two
// do not fail.
constinit Range openmp, program;

int find_ranges(dl_phdr_info* part, std::size_t, void*) {
  bool is_program = !part->dlpi_name || !*part->dlpi_name,
       is_openmp = !is_program && std::strstr(part->dlpi_name, "libgomp");
  bool is_first = !program.end;  // later ones without a name are the kernel's
  if (is_program ? !is_first : !is_openmp) return 0;
  Range& range = is_program ? program : openmp;
  for (int i = 0; i < part->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = part->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    range.begin = part->dlpi_addr + segment.p_vaddr;
    range.end = range.begin + segment.p_memsz;
  }
  return 0;
}

bool fails(const void* caller) {
  long first = first_to_fail.load(std::memory_order_relaxed);
  if (first == none || uncounted > 0 || openmp.contains(caller) || program.contains(caller)) return false;
  long index = counted.fetch_add(1, std::memory_order_relaxed);
  bool now = kind.load(std::memory_order_relaxed) == Fault::once ? index == first : index >= first;
  if (now) {
    failed.store(true, std::memory_order_relaxed);
    errno = ENOMEM;
  }
  return now;
}

// The memory that dlsym itself allocates while it looks up the system's functions. Never freed.
alignas(64) constinit std::byte early[1 << 14];
constinit std::atomic<std::size_t> early_bytes = 0;

void* allocate_early(std::size_t bytes) {
  std::size_t start = early_bytes.fetch_add((bytes + 63) / 64 * 64);
  return start + bytes <= sizeof early ? early + start : nullptr;
}
bool is_early(const void* block) { return block >= early && block < early + sizeof early; }

// The system's or a sanitizer's function of a name, looked up at its first use.
template <class F>
class System {
 public:
  explicit constexpr System(const char* name) : name_(name) {}
  F* get() {
    F* found = found_.load(std::memory_order_acquire);
    if (found || looking_) return found;
    looking_ = true;
    found = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name_));
    looking_ = false;
    found_.store(found, std::memory_order_release);
    return found;
  }

 private:
  const char* name_;
  std::atomic<F*> found_ = nullptr;
  static inline thread_local constinit bool looking_ __attribute__((tls_model("initial-exec"))) = false;
};

constinit System<void*(std::size_t)> system_malloc("malloc");
constinit System<void*(std::size_t, std::size_t)> system_calloc("calloc");
constinit System<void*(void*, std::size_t)> system_realloc("realloc");
constinit System<void(void*)> system_free("free");
constinit System<void*(std::size_t, std::size_t)> system_aligned_alloc("aligned_alloc");
constinit System<void*(std::size_t, std::size_t)> system_memalign("memalign");
constinit System<int(void**, std::size_t, std::size_t)> system_posix_memalign("posix_memalign");

void* allocate(std::size_t bytes, const void* caller) {
  if (fails(caller)) return nullptr;
  auto* f = system_malloc.get();
  return f ? f(bytes) : allocate_early(bytes);
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (fails(caller)) return nullptr;
  auto* f = system_memalign.get();
  return f ? f(alignment, bytes) : nullptr;
}

void* checked(void* block) {
  if (!block) throw std::bad_alloc();
  return block;
}

void release(void* block) {
  if (is_early(block)) return;
  if (auto* f = system_free.get()) f(block);
}

}  // namespace

void fail_allocation(long index, Fault fault) {
  [[maybe_unused]] static const int searched = dl_iterate_phdr(find_ranges, nullptr);
  counted = 0;
  failed = false;
  kind = fault;
  first_to_fail = index;
}

long stop_failing() {
  first_to_fail = none;
  return counted;
}

bool has_failed() { return failed; }

Uncounted::Uncounted() { ++uncounted; }
Uncounted::~Uncounted() { --uncounted; }

}  // namespace reel_test

using namespace reel_test;

#define REEL_CALLER __builtin_return_address(0)

extern "C" {

void* malloc(std::size_t bytes) { return allocate(bytes, REEL_CALLER); }

void* calloc(std::size_t count, std::size_t size) {
  if (fails(REEL_CALLER)) return nullptr;
  auto* f = system_calloc.get();
  return f ? f(count, size) : allocate_early(count * size);  // its memory is zero
}

void* realloc(void* block, std::size_t bytes) {
  if (fails(REEL_CALLER)) return nullptr;
  return system_realloc.get()(block, bytes);
}

void free(void* block) { release(block); }

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails(REEL_CALLER) ? nullptr : system_aligned_alloc.get()(alignment, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) { return allocate_aligned(bytes, alignment, REEL_CALLER); }

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  return fails(REEL_CALLER) ? ENOMEM : system_posix_memalign.get()(block, alignment, bytes);
}

}  // extern "C"

// A sanitizer has its own operators, which do not call malloc.

void* operator new(std::size_t bytes) { return checked(allocate(bytes, REEL_CALLER)); }
void* operator new[](std::size_t bytes) { return checked(allocate(bytes, REEL_CALLER)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, REEL_CALLER); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, REEL_CALLER); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return checked(allocate_aligned(bytes, static_cast<std::size_t>(alignment), REEL_CALLER));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return checked(allocate_aligned(bytes, static_cast<std::size_t>(alignment), REEL_CALLER));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_aligned(bytes, static_cast<std::size_t>(alignment), REEL_CALLER);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_aligned(bytes, static_cast<std::size_t>(alignment), REEL_CALLER);
}
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { release(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { release(block); }
