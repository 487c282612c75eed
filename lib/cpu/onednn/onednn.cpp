#include "onednn.h"

#include <new>
#include <string>

#include <reel/error.h>

#include "../../core/per_thread.h"

namespace reel::detail::onednn {

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success)
    throw InternalError(std::string("oneDNN refused ") + what + " with status " +
                        std::to_string(static_cast<int>(status)));
}

dnnl_engine_t engine() {
  static const Engine engine = [] {
    dnnl_engine_t made;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "an engine");
    return Engine(made);
  }();
  return engine.get();
}

dnnl_stream_t stream() {
  static constinit PerThread<Stream> stream;
  return stream
      .get([] {
        dnnl_stream_t made;
        check(dnnl_stream_create(&made, engine(), dnnl_stream_default_flags), "a stream");
        return Stream(made);
      })
      .get();
}

MatrixDescriptor::MatrixDescriptor(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t columns, dnnl_dim_t row_stride,
                                   dnnl_dim_t column_stride) {
  dnnl_dims_t sizes = {rows, columns}, strides = {row_stride, column_stride};
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t made;
  check(dnnl_memory_desc_create_with_strides(&made, 2, sizes, type, strides), "a matrix");
  descriptor_.reset(made);
#else
  check(dnnl_memory_desc_init_by_strides(&descriptor_, 2, sizes, type, strides), "a matrix");
#endif
}

MatrixDescriptor MatrixDescriptor::vnni(dnnl_dim_t rows, dnnl_dim_t columns) {
  MatrixDescriptor made;
  dnnl_dims_t sizes = {rows, columns};
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t descriptor;
  check(dnnl_memory_desc_create_with_tag(&descriptor, 2, sizes, dnnl_bf16, dnnl_BA16a64b2a), "a matrix of pairs");
  made.descriptor_.reset(descriptor);
#else
  check(dnnl_memory_desc_init_by_tag(&made.descriptor_, 2, sizes, dnnl_bf16, dnnl_BA16a64b2a), "a matrix of pairs");
#endif
  return made;
}

Memory MatrixDescriptor::memory() const {
  dnnl_memory_t made;
  check(dnnl_memory_create(&made, get(), engine(), DNNL_MEMORY_NONE), "a matrix");
  return Memory(made);
}

Primitive matmul(const MatrixDescriptor& a, const MatrixDescriptor& b, const MatrixDescriptor& c) {
  constexpr const char* what = "a matrix product";
  dnnl_primitive_desc_t described;
#if DNNL_VERSION_MAJOR >= 3
  check(dnnl_matmul_primitive_desc_create(&described, engine(), a.get(), b.get(), nullptr, c.get(), nullptr), what);
#else
  dnnl_matmul_desc_t operation;
  check(dnnl_matmul_desc_init(&operation, a.get(), b.get(), nullptr, c.get()), what);
  check(dnnl_primitive_desc_create(&described, &operation, nullptr, engine(), nullptr), what);
#endif
  PrimitiveDescriptor descriptor(described);
  dnnl_primitive_t made;
  check(dnnl_primitive_create(&made, descriptor.get()), what);
  return Primitive(made);
}

namespace {

// oneDNN's names for sets, and the bits that it gives for them, are those of x86-64.
#if defined(__x86_64__)
constexpr bool has_named_sets = true;
#else
constexpr bool has_named_sets = false;
#endif

bool has(dnnl_cpu_isa_t set) {
  if (!has_named_sets) return false;
  instruction_set();  // oneDNN's limit must be set before the query
  return (dnnl_get_effective_cpu_isa() & set) == set;
}

// oneDNN's name for the set. Its smallest is slightly larger than the baseline: it has no code for less.
dnnl_cpu_isa_t limit_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512: return dnnl_cpu_isa_avx512_core;
    case InstructionSet::avx2: return dnnl_cpu_isa_avx2;
    default: return dnnl_cpu_isa_sse41;
  }
}

}  // namespace

bool limit_to(InstructionSet set) {
  if (!has_named_sets) return true;
  dnnl_cpu_isa_t limit = limit_of(set);
  // oneDNN refuses after the limit was first read; that is fine if it was low enough, as set by ONEDNN_MAX_CPU_ISA.
  static_cast<void>(dnnl_set_max_cpu_isa(limit));
  return has_no_more_than(set);
}

bool has_no_more_than(InstructionSet set) {
  return !has_named_sets || (dnnl_get_effective_cpu_isa() & ~limit_of(set)) == 0;
}

bool can_generate() {
  static const bool found = [] {
    instruction_set();  // oneDNN's limit must be set before its first product
    constexpr dnnl_dim_t size = 16;
    const float a[size * size] = {}, b[size * size] = {};
    float c[size * size];
    return dnnl_sgemm('N', 'N', size, size, size, 1, a, size, b, size, 0, c, size) == dnnl_success;
  }();
  return found;
}

bool has_bf16() {
  static const bool found = has(dnnl_cpu_isa_avx512_core_bf16) && can_generate();
  return found;
}

bool has_bf16_tiles() {
  static const bool found = has(dnnl_cpu_isa_avx512_core_amx);
  return found;
}

}  // namespace reel::detail::onednn
