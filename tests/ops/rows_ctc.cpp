#include "ops/table.h"

namespace reel_test {

using namespace reel;

void add_ctc_rows(std::vector<Row>&) {}

void add_random_ctc_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
