#pragma once

#include <set>
#include <string>

#include "ops/table/interceptor_scope.h"

namespace reel_test {

/// Runs each op with guard bytes around its outputs, and compares these and the storages of its inputs
/// afterwards with what they were before.
class GuardInterceptor : public reel::detail::Interceptor {
 public:
  void run(reel::detail::Call& call) override;
  /// The faults found since the last call; empty if there are none.
  std::string take_faults();
  /// All ops that have run.
  const std::set<const reel::detail::OpInfo*>& ops() const { return ops_; }

 private:
  std::string faults_;
  std::set<const reel::detail::OpInfo*> ops_;
};

}  // namespace reel_test
