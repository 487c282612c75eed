// To be loaded into a program by LD_PRELOAD: puts a NaN into the output of one op of its first training step, and ends the
// process after that step, whose recording stays. REEL_INJECT_OP: the index of the op, from 0; −1 for none. The op is
// written to standard error.

#include <limits>
#include <memory>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <reel/dtype.h>

#include "core/context.h"
#include "core/op.h"
#include "debug/listener_scope.h"

namespace {

using namespace reel;

class Inject : public debug::ListenerScope {
 public:
  explicit Inject(std::int64_t index) : ListenerScope(detail::context()), index_(index) {}

  void finished(const detail::Call& call, Location where) override {
    // Ops before the recording begins, which initialise the model, are not those of a step.
    if (detail::context().listener == this) return;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const Tensor& output = call.outputs[i];
      if (!output.defined() || output.dtype() != f32 || output.numel() == 0 || call.op.writes_part ||
          (call.op.hidden_outputs >> i & 1))
        continue;
      if (count_++ == index_) {
        *static_cast<float*>(output.body().data) = std::numeric_limits<float>::quiet_NaN();
        std::fprintf(stderr, "injected %s at %s\n", call.op.name, to_string(where).c_str());
      }
      break;
    }
    ListenerScope::finished(call, where);
  }
  void updating(std::span<const Tensor>) override {
    std::fprintf(stderr, "ops %lld\n", static_cast<long long>(count_));
    _exit(0);
  }

 private:
  std::int64_t index_, count_ = 0;
};

// Lives until the process ends, without destructors.
[[gnu::constructor]] void begin() {
  const char* index = std::getenv("REEL_INJECT_OP");
  if (index) static_cast<void>(std::make_unique<Inject>(std::strtoll(index, nullptr, 10)).release());
}

}  // namespace
