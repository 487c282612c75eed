#include "ops/table.h"

namespace reel_test {

using namespace reel;

void add_pool_rows(std::vector<Row>&) {}

void add_random_pool_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
