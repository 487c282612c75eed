#pragma once

#include "context.h"
#include "fail.h"

namespace reel::detail {

/// Where the program is, beside its line: the running module and the notes, as in "in layers.1.attention with epoch = 3".
/// Empty outside of modules, and in a module that no other contains, without notes.
std::string whereabouts(const Context& context);

/// While it lives, errors of ops name the composed function `op` in place of the op that throws, and its caller, unless
/// an outer scope names one.
class OpScope : Immovable {
 public:
  OpScope(Location where, const char* op) : caller_(where, op), named_(!context().function) {
    if (named_) context().function = op;
  }
  ~OpScope() {
    if (named_) context().function = nullptr;
  }

 private:
  CallerScope caller_;
  bool named_;
};

}  // namespace reel::detail
