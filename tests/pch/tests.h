// Precompiled for the test programs: parsing these headers takes longer than most tests themselves. Files include what they
// use all the same.
#include <reel/reel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "catch.h"
