#include "../core/context.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <utility>

#include "../core/device/device_module.h"
#include "../core/memory_error.h"
#include "../core/per_thread.h"
#include "../kernels/kernel_table.h"
#include "../record/tape_list.h"

namespace reel {
namespace detail {

namespace {

// The state of a thread. It is never destroyed: tensors may outlive their thread, which leaves it to another when it
// ends. Tensors that are freed even later in the thread's end are returned to its heap as by another thread.
struct ThreadState : ThreadEndCallback {
  ThreadState() : ThreadEndCallback{leave}, tapes(scopes) {
    context.heap = &heap;
    context.tapes = &tapes;
    context.generator = &generator;
  }
  static void leave(ThreadEndCallback& self) noexcept;

  Context context;
  Heap heap;
  Scopes scopes;
  TapeList tapes;
  Generator generator;
  ThreadState* next = nullptr;  // among the states without a thread
};

// The states that ended threads have left: an intrusive list, because the end of a thread must not fail.
class Abandoned {
 public:
  void put(ThreadState* state) noexcept {
    std::lock_guard lock(mutex_);
    state->next = std::exchange(first_, state);
  }
  // Returns null if there is none.
  ThreadState* take() noexcept {
    std::lock_guard lock(mutex_);
    return first_ ? std::exchange(first_, first_->next) : nullptr;
  }
  std::uint64_t next_thread() noexcept { return threads_.fetch_add(1, std::memory_order_relaxed); }

 private:
  ForkSafeMutex mutex_;
  ThreadState* first_ = nullptr;
  std::atomic<std::uint64_t> threads_ = 0;
};

Abandoned& abandoned() {
  static auto& list = *std::make_unique<Abandoned>().release();
  return list;
}

void ThreadState::leave(ThreadEndCallback& self) noexcept {
  auto& state = static_cast<ThreadState&>(self);
  // Ends all open scopes: otherwise the next owner of this state would inherit them.
  state.scopes.end_all();
  state.context.tapes->end();  // in a forked process not `tapes`, which its parent continues to use
  state.context.scope_id = 0;
  state.context.casts = nullptr;
  state.context.function = nullptr;
  state.context.listener = nullptr;
  state.context.wait_listener = nullptr;
  state.context.interceptor = nullptr;
  state.context.set_flags(0);
  state.heap.release_cache();
  state.tapes.release_memory();
  current_context = nullptr;
  abandoned().put(&state);
}

// A forked process has its parent's open tapes on its stack. They end on the list that they belong to, while the
// process itself begins another list.
void leave_tapes_to_parent() {
  if (!current_context || current_context->tapes->depth == 0) return;
  TapeList*& tapes = current_context->tapes;
  tapes = std::make_unique<TapeList>(*tapes, getppid()).release();
}

}  // namespace

Context& create_context() {
  return with_memory_error("a thread's first use of reel", {}, [&]() -> Context& {
    Abandoned& list = abandoned();  // first: a forked process unlocks its mutexes before it uses them
    static std::once_flag tables_filled;
    std::call_once(tables_filled, [] {
      fill_kernel_tables();
      pthread_atfork(nullptr, nullptr, leave_tapes_to_parent);
    });
    ThreadState* state = list.take();
    if (!state) state = std::make_unique<ThreadState>().release();
    try {
      call_at_thread_end(*state);
    } catch (...) {
      list.put(state);
      throw;
    }
    // Tensors that other threads have made on devices may be used by this thread, too.
    state->context.set_flags(opened_device_module() ? std::uint32_t{Context::on_device} : 0u);
    state->context.device = cpu;
    state->generator = Generator(list.next_thread());
    current_context = &state->context;
    return state->context;
  });
}

}  // namespace detail

Device default_device() {
  detail::Context& context = detail::context();
  context.tapes->scopes().apply_remote_ends(context);
  return context.device;
}

DeviceGuard::DeviceGuard(Device device) : before_(default_device()) {
  detail::Context& context = detail::context();
  context.tapes->scopes().begin(context, {this, detail::Setting::device, std::bit_cast<std::uint16_t>(device)});
}
DeviceGuard::~DeviceGuard() { detail::Scopes::end(this); }

void release_memory_cache() {
  detail::context().heap->release_cache();
  detail::context().tapes->release_memory();
}

}  // namespace reel
