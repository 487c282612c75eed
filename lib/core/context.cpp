#include "context.h"

namespace reel {

thread_local constinit detail::Context* detail::current_context = nullptr;

CallerScope::CallerScope(Location where, const char* function) : opened_(false) {
  detail::Context& context = detail::context();
  if (context.has(detail::Context::caller_named)) return;
  context.caller = where;
  context.caller_function = function;
  context.set(detail::Context::caller_named, true);
  opened_ = true;
}

CallerScope::~CallerScope() {
  if (opened_) detail::context().set(detail::Context::caller_named, false);
}

Generator& default_generator() { return *detail::context().generator; }

void manual_seed(std::uint64_t seed) { default_generator() = Generator(seed); }

MemoryStatistics memory_statistics() { return detail::context().heap->statistics(); }

void set_memory_cache_limit(std::size_t bytes) { detail::context().heap->set_cache_limit(bytes); }

}  // namespace reel
