#pragma once

// The namespace of code that is compiled once per instruction set or device, so that no processor runs code that was
// compiled for another. The build defines the name; elsewhere it is that of plain code.
#ifndef REEL_TARGET
#define REEL_TARGET scalar
#endif

// Marks functions that also run on devices, and functions that run on devices only; ordinary compilers see plain
// functions.
#if defined(__CUDACC__)
#define REEL_HOST_DEVICE __host__ __device__
#define REEL_DEVICE __device__
#else
#define REEL_HOST_DEVICE
#define REEL_DEVICE
#endif
