#include <reel/cuda/kernel.h>
#include <reel/error.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>

namespace {

// A thread for each column.
template <class T>
__global__ void decayed_sum_kernel(T* h, const T* x, const T* a, std::int64_t steps, std::int64_t columns,
                                   bool reversed) {
  std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  T sum = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    std::int64_t at = (reversed ? steps - 1 - i : i) * columns + column;
    sum = a[column] * sum + x[at];
    h[at] = sum;
  }
}

template <class T>
void launch(reel::Tensor& h, const reel::Tensor& x, const reel::Tensor& a, bool reversed) {
  constexpr unsigned threads = 128;
  std::int64_t steps = x.size(0), columns = x.size(1);
  reel::cuda::Writer<T> out = reel::cuda::write<T>(h);
  auto blocks = static_cast<unsigned>((columns + threads - 1) / threads);
  decayed_sum_kernel<<<blocks, threads, 0, reel::cuda::stream(x.device())>>>(
      out.data(), reel::cuda::data<T>(x), reel::cuda::data<T>(a), steps, columns, reversed);
  if (cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    throw reel::DeviceError(cudaGetErrorString(status), {});
}

}  // namespace

reel::Tensor decayed_sum_on_gpu(const reel::Tensor& x, const reel::Tensor& a, bool reversed) {
  if (x.rank() != 2 || a.shape() != reel::Shape{x.size(1)})
    throw reel::ShapeError("decayed_sum: x must be (T, N) and a (N)", x.made_at());
  reel::Tensor h = zeros_like(x);
  if (x.numel() == 0) return h;
  // Kernels read elements without gaps; a gradient may be the view of a single number.
  reel::Tensor x_packed = contiguous(x), a_packed = contiguous(a);
  if (x.dtype() == reel::f64)
    launch<double>(h, x_packed, a_packed, reversed);
  else
    launch<float>(h, x_packed, a_packed, reversed);
  return h;
}
