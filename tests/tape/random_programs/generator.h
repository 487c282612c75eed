#pragma once

#include <cstdint>

#include "program.h"

namespace reel_test::programs {

/// The program of a seed: its instructions make sense, and some of them are mistakes that must be refused.
Program random_program(std::uint64_t seed);

}  // namespace reel_test::programs
