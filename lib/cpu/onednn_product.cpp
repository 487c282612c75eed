#include "onednn_product.h"

#include <algorithm>
#include <utility>

#include "onednn.h"
#include "openmp.h"
#include "parallel.h"
#include "primitive_cache.h"

namespace reel::detail {
namespace {

using namespace onednn;

struct Key {
  std::int64_t m, n, k, a_step, b_step, c_step;
  std::int64_t a_turned, b_turned, sized;
};

// Memories of given sizes, and what works on them.
struct Bound {
  Memory a, b, c;
  Primitive own;  // null where the primitive serves all sizes
  dnnl_primitive_t primitive;
};

MatrixDescriptor described(dnnl_data_type_t type, bool turned, std::int64_t rows, std::int64_t columns,
                           std::int64_t step) {
  return turned ? MatrixDescriptor(type, rows, columns, 1, step) : MatrixDescriptor(type, rows, columns, step, 1);
}

dnnl_primitive_t primitive_for(bool a_turned, bool b_turned) {
  static thread_local Primitive primitives[2][2];
  Primitive& primitive = primitives[a_turned][b_turned];
  constexpr std::int64_t later = DNNL_RUNTIME_DIM_VAL;
  if (!primitive)
    primitive =
        matmul(described(dnnl_bf16, a_turned, later, later, later), described(dnnl_bf16, b_turned, later, later, later),
               described(dnnl_f32, false, later, later, later));
  return primitive.get();
}

Bound bind(const Key& key) {
  MatrixDescriptor a = described(dnnl_bf16, key.a_turned, key.m, key.k, key.a_step),
                   b = described(dnnl_bf16, key.b_turned, key.k, key.n, key.b_step),
                   c = described(key.sized ? dnnl_bf16 : dnnl_f32, false, key.m, key.n, key.c_step);
  Primitive own = key.sized ? matmul(a, b, c) : nullptr;
  dnnl_primitive_t primitive = own ? own.get() : primitive_for(key.a_turned, key.b_turned);
  return {a.memory(), b.memory(), c.memory(), std::move(own), primitive};
}

void run(void* c, std::int64_t c_step, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b, bool sized) {
  bool a_turned = !a.row_major(), b_turned = !b.row_major();
  OneThread alone;
  Key key{a.rows, b.columns, a.columns, a.step(), b.step(), std::max(c_step, b.columns), a_turned, b_turned, sized};
  static thread_local PrimitiveCache<Key, Bound> cache(128);
  const Bound& bound = cache.find(key, [&] { return bind(key); });
  // oneDNN takes what it reads as void*, too.
  check(dnnl_memory_set_data_handle(bound.a.get(), const_cast<BFloat16*>(a.data)), "a matrix");
  check(dnnl_memory_set_data_handle(bound.b.get(), const_cast<BFloat16*>(b.data)), "a matrix");
  check(dnnl_memory_set_data_handle(bound.c.get(), c), "a matrix");
  const dnnl_exec_arg_t arguments[] = {
      {DNNL_ARG_SRC, bound.a.get()}, {DNNL_ARG_WEIGHTS, bound.b.get()}, {DNNL_ARG_DST, bound.c.get()}};
  check(dnnl_primitive_execute(bound.primitive, stream(), 3, arguments), "a matrix product");
}

// Rows [begin, end).
template <class T>
PackedMatrix<T> rows_of(const PackedMatrix<T>& m, std::int64_t begin, std::int64_t end) {
  return {m.data + begin * m.row_step, end - begin, m.columns, m.row_step, m.column_step};
}
}  // namespace

void multiply_large(float* c, std::int64_t c_step, const PackedMatrix<float>& a, const PackedMatrix<float>& b,
                    bool adds) {
  OneThread alone(openmp_threads_are_lost());
  share_floating_point_mode();
  sgemm(!a.row_major(), !b.row_major(), a.rows, b.columns, a.columns, a.data, a.step(), b.data, b.step(), c, c_step,
        adds ? 1.f : 0.f);
}

bool can_multiply(const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b) {
  return has_bf16() && a.is_readable() && b.is_readable();
}

void multiply(float* c, std::int64_t c_step, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b) {
  run(c, c_step, a, b, false);
}

void multiply_sized(BFloat16* c, std::int64_t c_step, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b,
                    bool threaded) {
  std::int64_t pieces = (a.rows + rows_of_sized - 1) / rows_of_sized;
  auto multiply_pieces = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first * rows_of_sized; begin < std::min(last * rows_of_sized, a.rows);
         begin += rows_of_sized)
      run(c + begin * c_step, c_step, rows_of(a, begin, std::min(begin + rows_of_sized, a.rows)), b, true);
  };
  threaded ? parallel_for(pieces, 1, multiply_pieces) : multiply_pieces(0, pieces);
}

}  // namespace reel::detail
