#include <fmt/format.h>

#include "cases.h"

namespace reel_bench {

using namespace reel;

namespace {

struct Product {
  std::string dtype;
  DType type;
  bool tf32;
  std::vector<std::int64_t> sizes;
};

CudaCase product(const Product& p, std::int64_t rows, std::int64_t size, Device device) {
  std::string name = fmt::format("matmul {} ({}, {}) x ({}, {})", p.dtype, rows, size, size, size);
  double work = 2.0 * static_cast<double>(rows * size) * static_cast<double>(size);
  return {"matmul",
          name,
          1,
          work,
          [=] {
            Tensor a = to(randn({rows, size}, {.device = device}), p.type);
            Tensor b = to(randn({size, size}, {.device = device}), p.type);
            return [=] { matmul(a, b); };
          },
          p.tf32};
}

}  // namespace

std::vector<CudaCase> matmul_cases(Device device) {
  std::vector<CudaCase> cases;
  for (const Product& p : {Product{"f32", DType::f32, false, {256, 1024, 4096}},
                           Product{"tf32", DType::f32, true, {256, 1024, 4096, 8192}},
                           Product{"bf16", DType::bf16, false, {256, 1024, 4096, 8192}},
                           Product{"f16", DType::f16, false, {256, 1024, 4096, 8192}}}) {
    for (std::int64_t size : p.sizes) cases.push_back(product(p, size, size, device));
    cases.push_back(product(p, 32, 2048, device));
  }
  cases.push_back(product({"f64", DType::f64, false, {}}, 2048, 2048, device));
  return cases;
}

}  // namespace reel_bench
