#include "version.h"

#include <c10/util/Exception.h>
#include <torch/version.h>

namespace reel_bench {

namespace {

#if TORCH_VERSION_MAJOR == 1
namespace warnings = c10::Warning;
struct Silence : c10::WarningHandler {
  void process(const c10::SourceLocation&, const std::string&, bool) override {}
};
#else
namespace warnings = c10::WarningUtils;
struct Silence : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};
#endif

}  // namespace

std::string torch_version() { return TORCH_VERSION; }

void ignore_torch_warnings() {
  static Silence silence;
  warnings::set_warning_handler(&silence);
}

}  // namespace reel_bench
