// Precompiled for the table of ops, whose rows are optimised where tests are not.
#include <reel/reel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>
