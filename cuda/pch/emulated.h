// Precompiled for the emulated device. Files still include what they use.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../lib/core/dtype_dispatch.h"
#include "../../lib/kernels/kernel_table.h"
#include "../device/formula_loop.h"
#include "../device/launch.h"
#include "../runtime/cuda_kernels.h"
#include "../runtime/driver.h"
#include "../runtime/runtime.h"
