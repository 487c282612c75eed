#include <reel/no_record.h>

#include "../core/context.h"
#include "tape_list.h"

namespace reel {

using namespace detail;

NoRecord::NoRecord() {
  Context& context = detail::context();
  constexpr auto paused = static_cast<std::uint32_t>(Recording::paused);
  context.tapes->scopes().begin(context, {this, Setting::recording, paused});
}

NoRecord::~NoRecord() { Scopes::end(this); }

bool is_recording() {
  Context& context = detail::context();
  context.tapes->scopes().apply_remote_ends(context);
  return context.has(Context::recording);
}

}  // namespace reel
