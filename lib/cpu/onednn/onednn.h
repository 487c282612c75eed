#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <type_traits>

#include "../processor.h"

// The only file that depends on oneDNN's version: 2.6, or 3.x, where operation descriptors were removed.

namespace reel::detail::onednn {

/// Throws: std::bad_alloc if a call ran out of memory; InternalError if it failed otherwise.
void check(dnnl_status_t status, const char* what);

template <class T, dnnl_status_t (*destroy)(T)>
struct Destroy {
  void operator()(T handle) const { static_cast<void>(destroy(handle)); }
};
template <class T, dnnl_status_t (*destroy)(T)>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T, destroy>>;

using Engine = Handle<dnnl_engine_t, dnnl_engine_destroy>;
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;
using Primitive = Handle<dnnl_primitive_t, dnnl_primitive_destroy>;
using PrimitiveDescriptor = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;

/// The CPU engine.
dnnl_engine_t engine();
/// This thread's stream.
dnnl_stream_t stream();

/// A matrix's sizes and the strides of its rows and columns; DNNL_RUNTIME_DIM_VAL marks those not known yet.
class MatrixDescriptor {
 public:
  MatrixDescriptor(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t columns, dnnl_dim_t row_stride,
                   dnnl_dim_t column_stride);
  /// A bf16 matrix in strips of 64 columns; in each, the elements of two rows are interleaved. Rows are a multiple of
  /// 32.
  static MatrixDescriptor vnni(dnnl_dim_t rows, dnnl_dim_t columns);
  /// A memory object whose address is set at each use.
  Memory memory() const;

 private:
  MatrixDescriptor() = default;
  friend Primitive matmul(const MatrixDescriptor&, const MatrixDescriptor&, const MatrixDescriptor&);
#if DNNL_VERSION_MAJOR >= 3
  Handle<dnnl_memory_desc_t, dnnl_memory_desc_destroy> descriptor_;
  const_dnnl_memory_desc_t get() const { return descriptor_.get(); }
#else
  dnnl_memory_desc_t descriptor_;
  const dnnl_memory_desc_t* get() const { return &descriptor_; }
#endif
};

/// Creates the primitive c = a b.
Primitive matmul(const MatrixDescriptor& a, const MatrixDescriptor& b, const MatrixDescriptor& c);

/// Keeps oneDNN from using instructions beyond the set. Returns false if it is too late: a primitive already uses more.
/// On processors other than x86-64, which have one set, it does nothing and returns true.
bool limit_to(InstructionSet set);
/// Returns true if oneDNN uses no instructions beyond the set; on processors other than x86-64 always.
bool has_no_more_than(InstructionSet set);
/// Returns true if oneDNN can generate its kernels. It cannot where another library of the process has a copy of its code
/// generator whose functions take the place of its own, as PyTorch's wheels do.
bool can_generate();
/// Returns true if oneDNN uses bf16 instructions.
bool has_bf16();
/// Returns true if oneDNN uses instructions that multiply tiles of bf16 (AMX).
bool has_bf16_tiles();

}  // namespace reel::detail::onednn
