// Kernels of which machine_code_test.cpp knows what they do.

extern "C" {

__global__ void adds_floats(float* sums, float value) { atomicAdd(sums + threadIdx.x % 7, value); }
__global__ void adds_doubles(double* sums, double value) { atomicAdd(sums + threadIdx.x % 7, value); }
__global__ void adds_and_returns_floats(float* sum, float value, float* before) {
  before[threadIdx.x] = atomicAdd(sum, value);
}
__global__ void adds_integers(int* sums, int value) { atomicAdd(sums + threadIdx.x % 7, value); }
__global__ void raises_integers(unsigned* most, unsigned value) { atomicMax(most + threadIdx.x % 7, value); }

__global__ void copies_1_byte(char* to, const char* from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void copies_4_bytes(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void copies_16_bytes(float4* to, const float4* from) { to[threadIdx.x] = from[threadIdx.x]; }
}
