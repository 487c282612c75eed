#include <reel/debug/session.h>

#include <algorithm>
#include <utility>

#include <reel/debug/ops.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "live.h"

namespace reel::debug {

using namespace detail;

Session::Session(SessionOptions options, Location where) : live_(std::make_unique<Live>(std::move(options), where)) {}
Session::~Session() = default;

const RecordedRun& Session::run() const { return live_->run(); }

std::string_view Session::address() const { return live_->address(); }

void Session::add_filter(std::string_view name, TensorFilter filter, Location where) {
  live_->debugger().add_filter(name, std::move(filter), where);
}

void watch(const Watch& what, Location where) {
  if (!(what.bound >= 0) || !(what.gradient_norm >= 0) || !(what.scale_change > 1))
    fail<Error>("debug::watch", where,
                ".bound is {:g}, .gradient_norm {:g}, .scale_change {:g}; the first two must be at least 0, the last "
                "one above 1",
                what.bound, what.gradient_norm, what.scale_change);
  if (Session::Live* live = Session::Live::of_thread()) live->add(what);
}

void break_on(std::string_view op, std::function<bool(const RecordedOp&)> predicate, Location where) {
  std::vector<OpDescription> all = ops();
  // A composed op is recorded as those that it calls.
  if (std::ranges::none_of(all, [&](const OpDescription& one) { return one.name == op && one.batching != "composed"; }))
    fail<Error>("debug::break_on", where, "there is no op {}, or it is composed of others; `reel ops` lists them",
                shown(op));
  if (Session::Live* live = Session::Live::of_thread()) live->add_breakpoint(op, std::move(predicate));
}

void stop(Location where) {
  if (Session::Live* live = Session::Live::of_thread()) live->stop(context().call_site(where));
}

}  // namespace reel::debug
