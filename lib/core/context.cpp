#include "context.h"

#include <pthread.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <vector>

#include "../tape/tape_list.h"
#include "device_module.h"
#include "kernel_table.h"

namespace reel {
namespace detail {

thread_local constinit Context* current_context = nullptr;

namespace {

// What belongs to a thread. It is never destroyed: tensors may outlive their thread.
struct ThreadState {
  ThreadState() {
    context.heap = &heap;
    context.tapes = &tapes;
    context.generator = &generator;
  }
  Heap heap;
  TapeList tapes;
  Generator generator;
  Context context;
};

struct Abandoned {
  std::mutex mutex;
  std::vector<ThreadState*> states;
  std::uint64_t threads = 0;
};

Abandoned& abandoned() {
  static auto& list = *std::make_unique<Abandoned>().release();
  return list;
}

// Hands the state on when the thread ends. Tensors freed after that, by other thread-locals or static destructors, go
// back to their heap as another thread's would.
struct ThreadEnd {
  ThreadState* state = nullptr;
  ~ThreadEnd() {
    if (!state) return;
    state->heap.release_cache();
    state->tapes.release_memory();
    current_context = nullptr;
    std::lock_guard lock(abandoned().mutex);
    abandoned().states.push_back(state);
  }
};
thread_local ThreadEnd thread_end;

// A forked process has its parent's open tapes on its stack. They end there in peace, on the list that they know, while
// the process itself begins another.
void leave_tapes_to_parent() {
  if (!current_context || current_context->tapes->depth == 0) return;
  TapeList*& tapes = current_context->tapes;
  tapes = std::make_unique<TapeList>(*tapes, getppid()).release();
}

}  // namespace

Context& create_context() {
  static std::once_flag tables_filled;
  std::call_once(tables_filled, [] {
    fill_kernel_tables();
    pthread_atfork(nullptr, nullptr, leave_tapes_to_parent);
  });
  Abandoned& list = abandoned();
  std::lock_guard lock(list.mutex);
  ThreadState* state;
  if (list.states.empty()) {
    state = std::make_unique<ThreadState>().release();
  } else {
    state = list.states.back();
    list.states.pop_back();
  }
  // What threads have made on devices goes to others, too.
  state->context.flags = opened_device_module() ? std::uint32_t{Context::on_device} : 0u;
  state->context.device = cpu;
  state->generator = Generator(list.threads++);
  current_context = &state->context;
  thread_end.state = state;
  return state->context;
}

}  // namespace detail

CallerScope::CallerScope(Location where) : opened_(false) {
  detail::Context& context = detail::context();
  if (context.has(detail::Context::caller_named)) return;
  context.caller = where;
  context.set(detail::Context::caller_named, true);
  opened_ = true;
}

CallerScope::~CallerScope() {
  if (opened_) detail::context().set(detail::Context::caller_named, false);
}

Generator& default_generator() { return *detail::context().generator; }

void manual_seed(std::uint64_t seed) { default_generator() = Generator(seed); }

Device default_device() { return detail::context().device; }

DeviceGuard::DeviceGuard(Device device) : before_(default_device()) { detail::context().device = device; }
DeviceGuard::~DeviceGuard() { detail::context().device = before_; }

MemoryStatistics memory_statistics() { return detail::context().heap->statistics(); }

void set_memory_cache_limit(std::size_t bytes) { detail::context().heap->set_cache_limit(bytes); }

void release_memory_cache() {
  detail::context().heap->release_cache();
  detail::context().tapes->release_memory();
}

}  // namespace reel
