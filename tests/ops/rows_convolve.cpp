#include "ops/table.h"

namespace reel_test {

using namespace reel;

void add_convolve_rows(std::vector<Row>&) {}

void add_random_convolve_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
