#pragma once

#include <string>

#include "program.h"

namespace reel_test::programs {

/// Runs a program on the interpreter and on reel, step by step, and says where they first differ; empty: nowhere.
/// Instructions that make no sense, because others were left out, are passed over.
std::string difference(const Program& program, std::uint64_t seed);

}  // namespace reel_test::programs
