#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "cuda/stand_in/record.h"

// Tests that the stand-in detects what a GPU would refuse: each row makes one mistake.

namespace reel_test {

namespace {

using stand_in::take_violations;

// Streams, events and memory with which most mistakes are made.
struct Fixture {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  void *memory = nullptr, *pinned = nullptr;

  Fixture() {
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMalloc(&memory, 1000);
    cudaHostAlloc(&pinned, 1000, cudaHostAllocPortable | cudaHostAllocMapped);
  }
  ~Fixture() {
    cudaGetLastError();
    cudaSetDevice(0);
    for (cudaStream_t each : {stream, other}) cudaStreamSynchronize(each);
    cudaFree(memory);
    cudaFreeHost(pinned);
    cudaEventDestroy(event);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void begin() const { cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed); }
  cudaError_t end() const {
    cudaGraph_t graph = nullptr;
    cudaError_t status = cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    return status;
  }
};

struct Mistake {
  std::string name;
  std::function<void(const Fixture&)> make;
  std::string sentence;
};

// A product (m, k) (k, n) of f32 with one thing wrong.
struct Product {
  std::uint64_t rows = 4, columns = 4, depth = 4;
  std::int64_t leading_dimension = 4;
  std::int32_t batches = 1;
  std::int64_t batch_stride = 16;
  std::size_t shift = 0;
  cudaDataType type = CUDA_R_32F;

  void run(const Fixture& given) const {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 4, depth, 4);
    cublasLtMatrixLayoutCreate(&b, type, 4, 4, 4);
    cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, rows, columns, leading_dimension);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride,
                                       sizeof batch_stride);
    }
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, c, c, preference, 1, &found, &count);
    float one = 1;
    void* place = static_cast<char*>(given.memory) + shift;
    if (count > 0)
      cublasLtMatmul(handle, product, &one, place, a, given.memory, b, &one, given.memory, c, given.memory, c,
                     &found.algo, nullptr, 0, given.stream);
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product);
    cublasLtDestroy(handle);
  }
};

Mistake product(const std::string& name, const Product& wrong, const std::string& sentence) {
  return {name, [wrong](const Fixture& given) { wrong.run(given); }, sentence};
}

std::vector<Mistake> mistakes() {
  return {
      {"a fill over the end", [](const Fixture& f) { cudaMemsetAsync(f.memory, 0, 1001, f.stream); },
       "a fill: 1001 bytes at 0 exceed an allocation of 1000"},
      {"a copy over the end",
       [](const Fixture& f) {
         cudaMemcpyAsync(static_cast<char*>(f.memory) + 500, f.pinned, 501, cudaMemcpyDefault, f.stream);
       },
       "the target of a copy: 501 bytes at 500 exceed an allocation of 1000"},
      {"freed memory",
       [](const Fixture& f) {
         void* freed = nullptr;
         cudaMalloc(&freed, 10);
         cudaFree(freed);
         cudaMemsetAsync(freed, 0, 10, f.stream);
       },
       "a fill: the address is that of freed memory"},
      {"a second free",
       [](const Fixture&) {
         void* freed = nullptr;
         cudaMalloc(&freed, 10);
         cudaFree(freed);
         cudaFree(freed);
       },
       "memory is freed that was not allocated, or was freed before"},
      {"freed in use",
       [](const Fixture& f) {
         void* used = nullptr;
         cudaMalloc(&used, 10);
         cudaMemsetAsync(used, 0, 10, f.stream);
         cudaFree(used);
       },
       "memory is freed while work of stream"},
      {"memory of the CPU", [](const Fixture& f) { cudaMemsetAsync(const_cast<Fixture*>(&f), 0, 8, f.stream); },
       "a fill: the address is none of a device"},
      {"another device's stream",
       [](const Fixture& f) {
         cudaSetDevice(1);
         cudaMemsetAsync(f.memory, 0, 8, f.stream);
       },
       "the stream is one of device 0, and device 1 is selected"},
      {"another device's memory",
       [](const Fixture&) {
         cudaSetDevice(1);
         cudaStream_t second;
         cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
         void* memory = nullptr;
         cudaSetDevice(0);
         cudaMalloc(&memory, 10);
         cudaSetDevice(1);
         cudaMemsetAsync(memory, 0, 8, second);
       },
       "a fill: memory of device 0 is used on device 1"},
      {"another device's event",
       [](const Fixture& f) {
         cudaSetDevice(1);
         cudaEvent_t second;
         cudaEventCreateWithFlags(&second, cudaEventDisableTiming);
         cudaEventRecord(second, f.stream);
       },
       "an event of device 1 is recorded on a stream of device 0"},
      {"the default stream", [](const Fixture& f) { cudaMemsetAsync(f.memory, 0, 8, nullptr); },
       "cudaMemsetAsync uses the default stream"},
      {"a wait while a graph is recorded",
       [](const Fixture& f) {
         f.begin();
         cudaStreamSynchronize(f.stream);
         CHECK(f.end() == cudaErrorStreamCaptureInvalidated);
       },
       "cudaStreamSynchronize breaks the graph that is being recorded"},
      {"a graph that waits for work outside",
       [](const Fixture& f) {
         cudaEventRecord(f.event, f.other);
         f.begin();
         cudaStreamWaitEvent(f.stream, f.event, 0);
         CHECK(f.end() == cudaErrorStreamCaptureInvalidated);
       },
       "a graph that is being recorded waits for an event outside of it"},
      {"a stream that waits for a graph's event",
       [](const Fixture& f) {
         f.begin();
         cudaEventRecord(f.event, f.stream);
         cudaStreamWaitEvent(f.other, f.event, 0);
         f.end();
       },
       "a stream waits for an event of a graph that is being recorded"},
      {"pageable memory in a graph",
       [](const Fixture& f) {
         int number = 0;
         f.begin();
         cudaMemcpyAsync(f.memory, &number, sizeof number, cudaMemcpyDefault, f.stream);
         f.end();
       },
       "copies memory of the CPU that may be freed"},
      product("sizes", {.depth = 5}, "a product with sizes that do not agree"),
      product("a leading dimension", {.leading_dimension = 3}, "a product with a leading dimension below the rows"),
      product("types", {.type = CUDA_R_64F}, "a product with operands of several types"),
      product("overlapping results", {.batches = 2, .batch_stride = 8}, "a product with results that overlap"),
      product("too many matrices", {.batches = 65536}, "a product with a batch of 65536 matrices"),
      product("an operand over the end", {.batches = 4, .batch_stride = 64, .shift = 256},
              "832 bytes at 256 exceed an allocation of 1000"),
      product("alignment", {.shift = 4}, "the first operand of a product is not aligned to 256 bytes"),
  };
}

}  // namespace

TEST_CASE("the stand-in sees each mistake, and nothing in a program without one") {
  take_violations();
  for (const Mistake& mistake : mistakes()) {
    CAPTURE(mistake.name);
    std::vector<std::string> found;
    {
      Fixture fixture;
      mistake.make(fixture);
      found = take_violations();
    }
    REQUIRE(found.size() == 1);
    CHECK_THAT(found[0], contains(mistake.sentence));
    take_violations();
  }
  Fixture fixture;
  Product{}.run(fixture);
  Product{.batches = 4, .batch_stride = 64}.run(fixture);
  cudaMemcpyAsync(fixture.memory, fixture.pinned, 1000, cudaMemcpyDefault, fixture.stream);
  fixture.begin();
  cudaMemsetAsync(fixture.memory, 0, 1000, fixture.stream);
  CHECK(fixture.end() == cudaSuccess);
  CHECK(take_violations() == std::vector<std::string>());
}

TEST_CASE("the stand-in sees a stream that uses what another computes, unless it waits for it") {
  for (bool waits : {false, true}) {
    CAPTURE(waits);
    take_violations();
    Fixture fixture;
    cudaMemsetAsync(fixture.memory, 0, 1000, fixture.stream);
    cudaEventRecord(fixture.event, fixture.stream);
    if (waits) cudaStreamWaitEvent(fixture.other, fixture.event, 0);
    cudaMemcpyAsync(fixture.pinned, fixture.memory, 1000, cudaMemcpyDefault, fixture.other);
    CHECK(take_violations().size() == (waits ? 0 : 1));
  }
}

}  // namespace reel_test
