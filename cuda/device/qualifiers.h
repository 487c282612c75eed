#pragma once

// nvcc's words for the marks in lib/core/target.h. The build includes this file before each kernel.
#define REEL_HOST_DEVICE __host__ __device__
#define REEL_DEVICE __device__
