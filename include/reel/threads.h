#pragma once

#include <reel/location.h>

namespace reel {

/// How many threads a large op of the calling thread may use, itself included; at first as many as OpenMP takes:
/// `OMP_NUM_THREADS`, else the processors that the process may run on. Results are the same for every number.
int thread_count();

/// Sets `thread_count()` of the calling thread, and OpenMP's with it. Throws: Error unless it is at least 1.
void set_thread_count(int count, Location where = Location::here());

/// Whether the calling thread's ops take denormal numbers for zero: those closer to it than 2⁻¹²⁶ (f32, bf16) or 2⁻¹⁰²²
/// (f64), on which a processor may spend a hundred times as long. What would be denormal, in the end or on the way to it,
/// is then ±0, and denormal operands count as ±0; nothing else changes by a bit. All threads that work for an op do as
/// its caller. Default off: gradual underflow, as IEEE 754 has it. The setting is the calling thread's, and that of the
/// threads that it starts from then on. f16 keeps its denormals, as does what only moves elements; the processor's own
/// products of bf16 never do. On processors other than x86-64 it has no effect.
void set_flush_denormals(bool flush);

/// The calling thread's setting; false at first.
bool flushes_denormals();

}  // namespace reel
