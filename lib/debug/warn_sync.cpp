#include <reel/debug/warn_sync.h>

#include "../core/device/device_module.h"
#include "../core/op_error.h"
#include "../dispatch/invoke.h"
#include "../record/tape_list.h"
#include "line_sink.h"

namespace reel::debug {

using namespace detail;

class SyncScope::Warner : public WaitListener, detail::Immovable {
 public:
  explicit Warner(LineSink sink) : sink_(or_stderr(std::move(sink))) {
    Context& context = detail::context();
    context.tapes->scopes().begin(context, {this, Setting::wait_listener, 0, static_cast<WaitListener*>(this)});
  }
  ~Warner() override { Scopes::end(this); }

  void waits(Device device, const char* reason) override {
    const Context& context = detail::context();
    const Call* call = context.running;
    Location where = context.call_site(call ? call->where : Location{});
    sink_(fmt::format("{} waits for {}: {}{}{}", call ? call->op.name : "the CPU", to_string(device), reason,
                      where.file ? "; at " : "", where.file ? to_string(where) : ""));
    if (void* outer = context.tapes->scopes().object_around(this))
      static_cast<WaitListener*>(outer)->waits(device, reason);
  }

 private:
  LineSink sink_;
};

SyncScope::SyncScope(LineSink sink) : warner_(std::make_unique<Warner>(std::move(sink))) {}
SyncScope::~SyncScope() = default;

}  // namespace reel::debug
