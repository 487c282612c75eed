// Precompiled for each instruction set's kernels. Files include what they use all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/dtype_dispatch.h"
#include "../core/iteration.h"
#include "../core/threads/parallel.h"
#include "../cpu/simd/instruction_set.h"
#include "../kernels/kernel_table.h"
