#pragma once

// The namespace of what is compiled once per instruction set or device, so that no processor runs into code that was
// compiled for another. The build names it; elsewhere it is that of plain code.
#ifndef REEL_TARGET
#define REEL_TARGET scalar
#endif

// Functions that devices run, too, and functions of devices alone, which ordinary compilers take as any other.
#if defined(__CUDACC__)
#define REEL_HOST_DEVICE __host__ __device__
#define REEL_DEVICE __device__
#else
#define REEL_HOST_DEVICE
#define REEL_DEVICE
#endif
