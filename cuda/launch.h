#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"
#include "grid.h"

// The ways to run something on a device. All put it behind what the current stream has to do, and return.
//
//   for_each(count, body)     body(i) for i in [0, count), in no order
//
//   for_each_group(count, threads, shared_bytes, program)
//                             program(group) for each of `count` groups of threads that work together: a warp where
//                             threads = 32, else a block (a multiple of 32, at most 512)
//
//   for_each_block            the same for programs that never run by warps, which nvcc then compiles but once
//
// Bodies and programs are copied to the device: they hold plain numbers, device pointers and arrays of fixed size, and
// their operator() is `REEL_DEVICE … const`. A program runs in phases; what the threads of one phase have written, those
// of the next can read:
//
//   template <class Group>
//   REEL_DEVICE void operator()(Group& group) const {
//     auto partial = group.template per_thread<float>();      // one number a thread, kept from phase to phase
//     group.each([&](int thread) {                            // one phase: threads 0 … group.size() − 1
//       float sum = 0;
//       for (std::int64_t i = thread; i < length; i += group.size()) sum += x[group.index() * length + i];
//       partial[thread] = sum;
//     });
//     float total = group.reduce(partial, [](float a, float b) { return a + b; });    // all threads get it
//     group.each([&](int thread) { … });
//   }
//
// group.scan(partial, nothing, combine) gives each thread what those before it had, combined in their order, `nothing` for
// the first; it returns what all had.
//
// Outside of each(), a program may only compute from what is the same for all threads of a group: group.index(),
// group.size(), its members, and what reduce() and scan() gave. group.template shared<T>(count) gives memory that the
// threads of a group share, out of
// `shared_bytes` (each array takes its size rounded up to 16 bytes; at most 48 KB in all).
//
// Compiled by nvcc, this is launch_device.h. Elsewhere a device is emulated by the CPU, thread by thread: the same bodies
// and programs, over the same grid, in orders that a device might choose.

#if defined(__CUDACC__)
#include "launch_device.h"
#else
#include "emulated/launch_emulated.h"
#endif
