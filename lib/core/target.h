#pragma once

// The namespace of code that is compiled once per instruction set or device, so that no processor runs code that was
// compiled for another. The build defines the name; elsewhere it is that of plain code.
#ifndef REEL_TARGET
#define REEL_TARGET scalar
#endif

// Marks functions that also run on devices, and functions that run on devices only. The build defines both for nvcc, in
// cuda/device/qualifiers.h; other compilers see plain functions.
#ifndef REEL_HOST_DEVICE
#define REEL_HOST_DEVICE
#define REEL_DEVICE
#endif
