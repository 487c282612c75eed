#include "scopes.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>

#include "origin.h"
#include "tape_list.h"

namespace reel::detail {
namespace {

// The scopes of all threads, including ended ones, which are adopted by later threads.
struct Registry {
  ForkSafeMutex mutex;
  std::vector<Scopes*> all;
};

Registry& registry() {
  static auto& made = *std::make_unique<Registry>().release();
  return made;
}

bool records(Recording state) { return state == Recording::tape || state == Recording::isolated; }

Recording state_of(const OpenScope& scope) { return static_cast<Recording>(scope.value); }

bool uses_list(const OpenScope& scope, const void* list) {
  return scope.setting == Setting::recording && scope.object == list && records(state_of(scope));
}

// Returns true for a scope with a number below `end` on the context, or one that was open around the call that started its
// fibre.
bool is_around(const OpenScope& scope, const Context& context, std::uint64_t end) {
  for (const Context* at = &context; at; end = std::min(end, at->first_inner_scope), at = at->parent)
    if (scope.context == at) return scope.number < end;
  return false;
}

// Returns true if ops called before the scope begins or ends must have run by then.
bool changes_recording(const OpenScope& scope) {
  return scope.setting == Setting::listener || (scope.setting == Setting::recording && scope.object);
}

}  // namespace

Scopes::Scopes() {
  // Reserved, so that beginning a scope rarely allocates memory.
  open_.reserve(64);
  std::lock_guard lock(registry().mutex);
  registry().all.push_back(this);
}

// Called only if the thread's state could not be constructed completely.
Scopes::~Scopes() {
  std::lock_guard lock(registry().mutex);
  std::erase(registry().all, this);
}

void Scopes::begin(Context& context, OpenScope scope) {
  if (changes_recording(scope)) wait_for_all(context);
  apply_remote_ends(context);
  scope.context = &context;
  scope.number = next_number_++;
  {
    std::lock_guard lock(mutex_);
    open_.push_back(scope);
  }
  apply(context, scope.setting);
}

bool Scopes::remove(const void* scope, OpenScope& removed) noexcept {
  std::lock_guard lock(mutex_);
  auto found = std::find_if(open_.rbegin(), open_.rend(), [=](const OpenScope& open) { return open.scope == scope; });
  if (found == open_.rend()) return false;
  removed = *found;
  open_.erase(std::next(found).base());
  return true;
}

void Scopes::end(const void* scope) noexcept {
  OpenScope removed{};
  Context* context = current_context;
  Scopes* own = context ? &context->tapes->scopes() : nullptr;
  if (own) {
    own->apply_remote_ends(*context);
    if (own->remove(scope, removed)) {
      // Within a scope of its own an example delays nothing.
      if (changes_recording(removed) && removed.context != context) run_delayed(*context);
      if (removed.setting == Setting::recording && removed.object)
        static_cast<TapeList*>(removed.object)->update_depth(*own);
      own->apply(*removed.context, removed.setting);
      if (removed.number < own->last_fibre_) {
        ++own->changes_;
        own->update(*context);
      }
      return;
    }
  }
  // Destructors of scopes call this, so no other scope has the address.
  std::lock_guard lock(registry().mutex);
  for (Scopes* other : registry().all) {
    if (other == own || !other->remove(scope, removed)) continue;
    other->ended_elsewhere_.store(true, std::memory_order_release);
    return;
  }
}

void Scopes::end_tapes(const void* list) noexcept {
  std::lock_guard lock(mutex_);
  std::erase_if(open_,
                [=](const OpenScope& scope) { return uses_list(scope, list) && state_of(scope) == Recording::tape; });
}

void Scopes::end_all() noexcept {
  std::lock_guard lock(mutex_);
  open_.clear();
  ended_elsewhere_.store(false, std::memory_order_relaxed);
}

void Scopes::begin_fibre(Context& context) noexcept {
  context.first_inner_scope = last_fibre_ = next_number_;
  context.scope_changes = changes_;
}

void Scopes::end_fibre(Context& context) noexcept {
  if (context.first_inner_scope == next_number_) return;
  {
    std::lock_guard lock(mutex_);
    if (std::erase_if(open_, [&](const OpenScope& scope) { return scope.context == &context; }) == 0) return;
  }
  context.tapes->update_depth(*this);
}

bool Scopes::is_open(const void* scope) const noexcept {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(open_, [=](const OpenScope& open) { return open.scope == scope; });
}

int Scopes::tapes_on(const void* list) const noexcept {
  std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(open_, [=](const OpenScope& open) { return uses_list(open, list); }));
}

const void* Scopes::outermost_on(const void* list) const noexcept {
  std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(open_, [=](const OpenScope& open) { return uses_list(open, list); });
  return found == open_.end() ? nullptr : found->scope;
}

void* Scopes::object_around(const void* scope) const noexcept {
  std::lock_guard lock(mutex_);
  auto inner = std::ranges::find_if(open_, [=](const OpenScope& open) { return open.scope == scope; });
  if (inner == open_.end()) return nullptr;
  const OpenScope* outer = innermost(*inner->context, inner->setting, inner->number);
  return outer ? outer->object : nullptr;
}

// The innermost scope around a context with a setting and a number below `end`.
const OpenScope* Scopes::innermost(const Context& context, Setting setting, std::uint64_t end) const noexcept {
  for (auto open = open_.rbegin(); open != open_.rend(); ++open)
    if (open->setting == setting && is_around(*open, context, end)) return &*open;
  return nullptr;
}

void Scopes::apply(Context& context, Setting setting) noexcept {
  std::lock_guard lock(mutex_);
  const OpenScope* scope = innermost(context, setting, next_number_);
  switch (setting) {
    case Setting::recording: return apply_recording(context, scope);
    case Setting::device:
      context.device = scope ? std::bit_cast<Device>(static_cast<std::uint16_t>(scope->value)) : cpu;
      return;
    case Setting::autocast:
      context.casts = scope ? static_cast<Casts*>(scope->object) : nullptr;
      return context.set(Context::autocasting, scope && scope->value);
    case Setting::listener:
      context.listener = scope ? static_cast<Listener*>(scope->object) : nullptr;
      return context.set(Context::intercepted, context.listener || context.interceptor);
    case Setting::wait_listener:
      context.wait_listener = scope ? static_cast<WaitListener*>(scope->object) : nullptr;
      return;
  }
}

void Scopes::apply_recording(Context& context, const OpenScope* scope) noexcept {
  context.set(Context::recording, scope && records(state_of(*scope)));
  // Within an isolated function, tensors store the id of that function instead.
  if (context.scope_id >= first_isolated_scope) return;
  bool has_tape = std::ranges::any_of(
      open_, [](const OpenScope& open) { return open.setting == Setting::recording && records(state_of(open)); });
  Origin origin = Origin::before_tape;
  if (scope && records(state_of(*scope)))
    origin = Origin::recorded;
  else if (scope && state_of(*scope) == Recording::differentiating)
    origin = Origin::gradient;
  else if (has_tape)
    origin = Origin::paused;
  context.scope_id = static_cast<std::uint32_t>(origin);
}

void Scopes::apply_pending_ends(Context& context) noexcept {
  ended_elsewhere_.store(false, std::memory_order_relaxed);
  for (TapeList* list = context.tapes; list; list = list->outer()) list->update_depth(*this);
  ++changes_;
  update(context);
}

void Scopes::apply_all(Context& context) noexcept {
  context.scope_changes = changes_;
  for (Setting setting :
       {Setting::recording, Setting::device, Setting::autocast, Setting::listener, Setting::wait_listener})
    apply(context, setting);
}

}  // namespace reel::detail
