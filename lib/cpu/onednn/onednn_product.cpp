#include "onednn_product.h"

#include <algorithm>
#include <utility>

#include "../../core/per_thread.h"
#include "../../core/recent_cache.h"
#include "../../core/threads/openmp.h"
#include "onednn.h"

namespace reel::detail {
namespace {

using namespace onednn;

struct Key {
  std::int64_t m, n, k, a_stride, b_stride, c_stride;
  std::int64_t a_transposed, b_transposed;
};
struct VnniKey {
  std::int64_t m, n, k;
};

// Memory objects of given sizes, and the primitive that works on them.
struct Bound {
  Memory a, b, c;
  Primitive own;  // null if the primitive is shared by all sizes
  dnnl_primitive_t primitive;

  void run(void* to, const void* left, const void* right) const {
    // oneDNN takes non-const pointers also for what it only reads.
    check(dnnl_memory_set_data_handle(a.get(), const_cast<void*>(left)), "a matrix");
    check(dnnl_memory_set_data_handle(b.get(), const_cast<void*>(right)), "a matrix");
    check(dnnl_memory_set_data_handle(c.get(), to), "a matrix");
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, a.get()}, {DNNL_ARG_WEIGHTS, b.get()}, {DNNL_ARG_DST, c.get()}};
    check(dnnl_primitive_execute(primitive, stream(), 3, arguments), "a matrix product");
  }
};

MatrixDescriptor described(dnnl_data_type_t type, bool transposed, std::int64_t rows, std::int64_t columns,
                           std::int64_t step) {
  return transposed ? MatrixDescriptor(type, rows, columns, 1, step) : MatrixDescriptor(type, rows, columns, step, 1);
}

dnnl_primitive_t primitive_for(bool a_transposed, bool b_transposed) {
  static constinit PerThread<Primitive> primitives[2][2];
  constexpr std::int64_t later = DNNL_RUNTIME_DIM_VAL;
  return primitives[a_transposed][b_transposed]
      .get([&] {
        return matmul(described(dnnl_bf16, a_transposed, later, later, later),
                      described(dnnl_bf16, b_transposed, later, later, later),
                      described(dnnl_f32, false, later, later, later));
      })
      .get();
}

Bound bind(const Key& key) {
  MatrixDescriptor a = described(dnnl_bf16, key.a_transposed, key.m, key.k, key.a_stride),
                   b = described(dnnl_bf16, key.b_transposed, key.k, key.n, key.b_stride),
                   c = described(dnnl_f32, false, key.m, key.n, key.c_stride);
  return {a.memory(), b.memory(), c.memory(), nullptr, primitive_for(key.a_transposed, key.b_transposed)};
}

Bound bind(const VnniKey& key) {
  MatrixDescriptor a = described(dnnl_bf16, false, key.m, key.k, key.k), b = MatrixDescriptor::vnni(key.k, key.n),
                   c = described(dnnl_bf16, false, key.m, key.n, key.n);
  Primitive own = matmul(a, b, c);
  dnnl_primitive_t primitive = own.get();
  return {a.memory(), b.memory(), c.memory(), std::move(own), primitive};
}

template <class Key>
const Bound& bound(const Key& key) {
  static constinit PerThread<RecentCache<Key, Bound>> cache;
  return cache.get([] { return RecentCache<Key, Bound>(128); }).find(key, [&] { return bind(key); });
}

}  // namespace

bool can_multiply_bf16() { return has_bf16(); }
bool has_bf16_tiles() { return onednn::has_bf16_tiles(); }

void multiply(float* c, std::int64_t c_stride, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b) {
  bool a_transposed = !a.row_major(), b_transposed = !b.row_major();
  OneThread alone;
  bound(
      Key{a.rows, b.columns, a.columns, a.step(), b.step(), std::max(c_stride, b.columns), a_transposed, b_transposed})
      .run(c, a.data, b.data);
}

void multiply_vnni(BFloat16* c, const BFloat16* a, const BFloat16* packed_b, std::int64_t rows, std::int64_t columns,
                   std::int64_t depth) {
  OneThread alone;
  bound(VnniKey{rows, columns, depth}).run(c, a, packed_b);
}

}  // namespace reel::detail
