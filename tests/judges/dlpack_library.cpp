// Functions with a C interface, for judges that load this library into Python: they make tensors, pass them through
// DLPack, and say what became of them. A handle is a tensor on the heap. Nothing is thrown: a null pointer is a failure.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include <reel/reel.h>

using namespace reel;

namespace {

// Calls f, whose result is a pointer; the words of an error go to stderr.
template <class F>
auto guarded(F f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return {};
  }
}

Tensor* handle_of(Tensor x) { return std::make_unique<Tensor>(std::move(x)).release(); }

}  // namespace

extern "C" {

/// A tensor of the numbers 0, 1, 2, …, of a dtype in the order of `DType`.
Tensor* judge_make(int dtype, const std::int64_t* sizes, int rank) {
  return guarded([&] {
    Shape shape({sizes, static_cast<std::size_t>(rank)});
    return handle_of(reshape(to(arange(shape.numel()), static_cast<DType>(dtype)), shape));
  });
}

Tensor* judge_transposed(const Tensor* x) {
  return guarded([&] { return handle_of(transpose(*x)); });
}

/// The rows from the last to the first.
Tensor* judge_flipped(const Tensor* x) {
  return guarded([&] { return handle_of((*x)(slice(std::nullopt, std::nullopt, -1))); });
}

const void* judge_address(const Tensor* x) { return x->body().data; }

void* judge_export(const Tensor* x, int versioned) {
  return guarded([&]() -> void* {
    if (versioned) return io::to_dlpack_versioned(*x).release();
    return io::to_dlpack(*x).release();
  });
}

Tensor* judge_import(void* managed, int versioned) {
  return guarded([&] {
    if (versioned) return handle_of(io::from_dlpack(static_cast<io::DLManagedTensorVersioned*>(managed)));
    return handle_of(io::from_dlpack(static_cast<io::DLManagedTensor*>(managed)));
  });
}

/// Copies the elements in row-major order, as doubles. Returns false if they are not `count`.
bool judge_values(const Tensor* x, double* values, std::int64_t count) {
  return guarded([&] {
    std::vector<double> found = to(*x, f64).to_vector<double>();
    if (static_cast<std::int64_t>(found.size()) != count) return false;
    std::memcpy(values, found.data(), found.size() * sizeof(double));
    return true;
  });
}

/// Adds 1 to each element, in place.
bool judge_increase(Tensor* x) {
  return guarded([&] {
    add_(*x, 1);
    return true;
  });
}

void judge_drop(Tensor* x) { std::unique_ptr<Tensor> owner(x); }

std::int64_t judge_live_tensors() { return memory_statistics().live_tensors; }
}
