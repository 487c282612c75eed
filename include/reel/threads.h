#pragma once

#include <reel/location.h>

namespace reel {

/// The number of threads that a large op of the calling thread may use, itself included; at first that of OpenMP:
/// `OMP_NUM_THREADS`, else the processors that the process may run on. Results are equal to the bit for every number.
int thread_count();

/// Sets `thread_count()` of the calling thread, and OpenMP's with it: at least 1. Throws: Error if it is less than 1.
void set_thread_count(int count, Location where = Location::here());

/// Sets whether the calling thread's ops treat denormal numbers as zero: those closer to it than 2⁻¹²⁶ (f32, bf16) or
/// 2⁻¹⁰²² (f64), on which a processor may spend a hundred times as long. A denormal result, final or intermediate, is
/// then ±0, and a denormal operand is treated as ±0; nothing else changes by a bit. All threads that work for an op do
/// as its caller. Default off: gradual underflow, as IEEE 754 has it. The setting is the calling thread's, and that of
/// the threads that it starts from then on. f16 keeps its denormals, as do ops that only move elements; the processor's
/// own products of bf16 never keep them. On processors other than x86-64 and aarch64 it has no effect.
void set_flush_denormals(bool flush);

/// True if the calling thread's ops treat denormal numbers as zero; false at first. See set_flush_denormals.
bool flushes_denormals();

/// Sets whether a row's results on the CPU are equal to the bit whatever rows are computed beside it also where that costs
/// time: in products by a matrix whose columns are contiguous, such as the transpose of a row-major weight, and in products
/// of bf16, which then use no bf16 instructions. Everything else that treats rows alike has this property without it.
/// Default off. The setting is the process's; change it while no other thread computes.
void set_batch_invariant(bool invariant);

/// True if results are equal to the bit in any batch; false at first. See set_batch_invariant.
bool batch_invariant();

}  // namespace reel
