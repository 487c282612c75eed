#include <dlfcn.h>

#include <array>
#include <thread>
#include <vector>

#include "catch.h"
#include "cuda/gpu.h"

// Kernels of a program's own, through cuda::stream and device pointers. On the emulated device a kernel is a function that is
// queued as a launch is; samples/outside/kernel has one that nvcc compiles.

namespace reel_test {

using namespace reel;

namespace {

using Launch = void (*)(cuda::Stream stream, void (*kernel)(const void*), const void* arguments, std::size_t bytes);

template <class Kernel>
void launch(Device device, const Kernel& kernel) {
  cuda::Stream stream = cuda::stream(device);
  static auto queue = reinterpret_cast<Launch>(
      dlsym(dlopen(std::getenv("REEL_CUDA_MODULE"), RTLD_NOLOAD | RTLD_LAZY), "reel_emulated_launch"));
  queue(
      stream, [](const void* arguments) { (*static_cast<const Kernel*>(arguments))(); }, &kernel, sizeof kernel);
}

// out = a · b
template <class T>
struct Product {
  T* out;
  const T *a, *b;
  std::int64_t count;
  void operator()() const {
    for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
  }
};

template <class T>
void launch_product(Tensor& y, const Tensor& a, const Tensor& b) {
  cuda::Writer<T> out = cuda::write<T>(y);
  launch(y.device(), Product<T>{out.data(), cuda::data<T>(a), cuda::data<T>(b), out.size()});
}

// a · b with a kernel of this program, also in its gradients, of any order.
struct OwnProduct {
  static constexpr const char* name = "own_product";
  struct Saved {
    Tensor a, b;
  };
  Tensor forward(Saved& saved, const Tensor& a, const Tensor& b) const {
    saved = {a, b};
    return a * b;
  }
  Tensor forward_cuda(Saved& saved, const Tensor& a, const Tensor& b) const {
    saved = {a, b};
    Tensor y = zeros_like(a);
    if (a.dtype() == f64)
      launch_product<double>(y, contiguous(a), contiguous(b));
    else
      launch_product<float>(y, contiguous(a), contiguous(b));
    return y;
  }
  std::array<Tensor, 2> gradient(const Saved& saved, const Tensor& dy) const {
    return {apply(OwnProduct(), dy, saved.b), apply(OwnProduct(), dy, saved.a)};
  }
};

Tensor cube(const Arg& x) { return apply(OwnProduct(), apply(OwnProduct(), x, x), x); }

}  // namespace

TEST_CASE("an op with a kernel of its own has the values and gradients of the same op written with ops") {
  if (lacks_device()) return;
  manual_seed(5);
  for (DType dtype : {f32, f64}) {
    Tensor x = to(randn({3, 5}, {.dtype = dtype}), gpu);
    Tensor y, gradient;
    {
      Tape tape;
      tape.watch(x);
      Tensor cubed = cube(x);
      y = stop_gradient(cubed);
      gradient = tape.gradient(sum(cubed * cubed), x);
    }
    CHECK(max(abs(y - pow(x, 3))).item() <= 1e-5);
    CHECK(max(abs(gradient - 6 * pow(x, 5))).item() <= 1e-3);
  }
}

TEST_CASE("gradients of an op with a kernel of its own agree with differences, of the first and the second order") {
  if (lacks_device()) return;
  manual_seed(6);
  auto f = [](std::span<const Tensor> x) { return sum(cube(x[0])); };
  Tensor x = to(randn({4}, {.dtype = f64}), gpu);
  CHECK(debug::gradcheck(f, {x}).agrees);
  CHECK(debug::gradgradcheck(f, {x}).agrees);
}

TEST_CASE("a kernel of the program's own sees what another thread has queued, and that thread what it writes") {
  if (lacks_device()) return;
  for (int i = 0; i < 20; ++i) {
    Tensor x, y = zeros({1000}, {.device = gpu});
    std::thread([&] {
      x = ones({1000}, {.device = gpu});
      for (int k = 0; k < 10; ++k) x = x + 1;
    }).join();
    launch_product<float>(y, x, x);
    float found = 0;
    std::thread([&] { found = sum(y).item<float>(); }).join();
    CHECK(found == 121000);
  }
}

TEST_CASE("a kernel of the program's own is recorded in a graph, and each replay computes it anew") {
  if (lacks_device()) return;
  Tensor scale = full({3}, 2, {.device = gpu});
  auto step = [&](std::span<const Tensor> given) { return apply(OwnProduct(), given[0], scale) + 1; };
  cuda::Graph graph(step, {zeros({3}, {.device = gpu})});
  for (int i = 0; i < 5; ++i) {
    Tensor y = graph({full({3}, i, {.device = gpu})});
    CHECK(y.to_vector<float>() == std::vector<float>(3, static_cast<float>(2 * i + 1)));
  }
  CHECK(graph.is_recorded());
}

TEST_CASE("memory that a kernel of the program's own still uses may be freed") {
  if (lacks_device()) return;
  Tensor y = zeros({100}, {.device = gpu});
  for (int i = 0; i < 50; ++i) {
    Tensor a = full({100}, i, {.device = gpu});
    launch_product<float>(y, a, a);
    a.reset();
    Tensor other = full({100}, -1, {.device = gpu});
    CHECK(y.to_vector<float>() == std::vector<float>(100, static_cast<float>(i * i)));
  }
}

TEST_CASE("an overwrite by a kernel of the program's own is one for the tape") {
  if (lacks_device()) return;
  Tensor x = full({3}, 2, {.device = gpu}), w = ones({3}, {.device = gpu}).requires_grad();
  Tape tape;
  Tensor y = w * x;
  launch_product<float>(x, ones({3}, {.device = gpu}), ones({3}, {.device = gpu}));
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(sum(y)); }), contains("own_kernel_test.cpp"));
}

TEST_CASE("device pointers are refused where a kernel could not use them, with what to do") {
  if (lacks_device()) return;
  Tensor here = ones({2, 3}), there = ones({2, 3}, {.device = gpu}), transposed = transpose(there);
  CHECK_THAT(error_of<DeviceError>([&] { cuda::data<float>(here); }),
             contains("cuda::data: (2, 3) f32 lies on the CPU; copy it with to(x, cuda::device())"));
  CHECK_THAT(error_of<DeviceError>([&] { cuda::write<float>(here); }),
             contains("cuda::write: ") && contains("the CPU"));
  CHECK_THAT(error_of<DTypeError>([&] { cuda::data<double>(there); }),
             contains("cuda::data: elements of (2, 3) f32") && contains("cannot be read as f64"));
  CHECK_THAT(error_of<DTypeError>([&] { cuda::write<int>(there); }), contains("cannot be written as i32"));
  CHECK_THAT(error_of<ShapeError>([&] { cuda::write<float>(transposed); }),
             contains("cuda::write: ") && contains("write to a contiguous copy"));
  CHECK(cuda::strided_data<float>(transposed) == cuda::data<float>(there));
  CHECK_THAT(error_of<ShapeError>([&] { cuda::data<float>(transposed); }), contains("cuda::strided_data"));
  CHECK_THAT(error_of<DeviceError>([&] { there.data<float>(); }), contains("cuda::data to a kernel of your own"));
  CHECK_THAT(error_of<DeviceError>([&] { there.write<float>(); }), contains("cuda::write to a kernel of your own"));
  CHECK_THROWS_AS(cuda::data<float>(Tensor()), Error);
  CHECK_THAT(error_of<DeviceError>([&] { cuda::stream(); }), contains("cuda::stream: takes a GPU, not the CPU"));
  CHECK_THAT(error_of<DeviceError>([&] { cuda::stream({Device::Type::cuda, 200}); }), contains("there is no cuda:200"));
  Tape tape;
  tape.watch(there);
  Tensor y = there * 2;
  CHECK_THAT(error_of<TapeError>([&] { cuda::write<float>(y); }), contains("is tracked by an open tape"));
}

TEST_CASE("each thread has a stream of its own on each device") {
  if (lacks_device()) return;
  cuda::Stream own = cuda::stream(gpu), other = nullptr;
  std::thread([&] { other = cuda::stream(gpu); }).join();
  CHECK(own == cuda::stream(gpu));
  CHECK(other != own);
  DeviceGuard guard({Device::Type::cuda, 1});
  CHECK(cuda::stream() != own);
  CHECK(cuda::stream() == cuda::stream({Device::Type::cuda, 1}));
}

}  // namespace reel_test
