#include "ops/table.h"

namespace reel_test {

using namespace reel;

void add_linear_algebra_rows(std::vector<Row>&) {}

void add_random_linear_algebra_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
