#include "ops/table.h"

namespace reel_test {

using namespace reel;

void add_activation_rows(std::vector<Row>&) {}

void add_random_activation_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
