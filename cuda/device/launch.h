#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"
#include "grid.h"

// The ways to run code on a device. All queue it on the current stream and return.
//
//   for_each(count, body)     body(i) for i in [0, count), in no order
//
//   for_each_group(count, threads, shared_bytes, program)
//                             program(group) for each of `count` groups of cooperating threads: a warp if
//                             threads = 32, else a block (a multiple of 32, at most 512)
//
//   for_each_block            as for_each_group, for programs that never run by warps: nvcc compiles them only once
//
// Bodies and programs are copied to the device: they hold plain numbers, device pointers and arrays of fixed size, and
// their operator() is `REEL_DEVICE … const`. A program runs in phases; each phase sees what all threads have written in
// earlier phases:
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
// group.scan(partial, nothing, combine) gives each thread the values of all threads before it, combined in order, and
// `nothing` to the first; it returns the combination of all values.
//
// Outside of each(), a program may only compute from values that are equal for all threads of a group: group.index(),
// group.size(), its members, and the results of reduce() and scan(). group.template shared<T>(count) gives memory that
// the threads of a group share, out of `shared_bytes` (each array takes its size rounded up to 16 bytes; at most 48 KB
// in all).
//
// Compiled by nvcc, this is launch_device.h. Otherwise a device is emulated by the CPU, thread by thread: it runs the
// bodies and programs, over an equal grid, in orders that a device might choose.

#if defined(__CUDACC__)
#include "launch_device.h"
#else
#include "../emulated/launch_emulated.h"
#endif
