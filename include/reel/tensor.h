#pragma once

#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <reel/detail/body.h>
#include <reel/device.h>
#include <reel/dtype.h>
#include <reel/error.h>
#include <reel/location.h>
#include <reel/shape.h>

namespace reel {

class Arg;
class Index;
class Indexed;
struct RowGradient;
class Tensor;
template <class T>
class Writer;

namespace detail {
void end_write(const Tensor& tensor, Location where) noexcept;
/// Stands for an index that is not given.
extern const Index no_index;
}  // namespace detail

/// A C++ type that tensors hold: float, double, BFloat16, Float16, bool, unsigned char, and signed integers of 8, 16,
/// 32 and 64 bits.
template <class T>
concept Element = is_element_v<T>;

/// An array of numbers on a device: a handle, one pointer wide. Copies share the elements; views (slices, transposes)
/// share them too. `Tensor{}` is undefined: testable with `defined()`, and an error in any op.
class Tensor {
 public:
  /// An undefined tensor.
  Tensor() = default;
  /// Another handle of the tensor that `other` refers to: no elements are copied.
  Tensor(const Tensor& other) noexcept : body_(other.body_) {
    if (body_) body_->references.retain();
  }
  /// Takes over the handle `other`, which becomes undefined.
  Tensor(Tensor&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  /// Makes this handle refer to the tensor of `other`: no elements are copied (see `copy_` for that).
  Tensor& operator=(const Tensor& other) noexcept {
    Tensor copy(other);
    std::swap(body_, copy.body_);
    return *this;
  }
  /// Takes over the handle `other`, which becomes undefined.
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(body_, other.body_);
    if (&other != this) other.reset();
    return *this;
  }
  /// Releases the handle; the last one frees the elements.
  ~Tensor() { reset(); }

  /// True if the handle refers to a tensor; false for `Tensor{}`.
  bool defined() const { return body_ != nullptr; }
  /// Releases the handle and leaves it undefined; the last handle frees the elements.
  void reset() noexcept {
    if (detail::Body* body = std::exchange(body_, nullptr); body && body->references.release()) detail::destroy(body);
  }

  /// The sizes of all axes. Throws: Error if the tensor is undefined.
  Shape shape() const;
  /// Elements to skip from one index to the next, per axis; 0 on an expanded axis, negative on a flipped one.
  /// Throws: Error if the tensor is undefined.
  Shape strides() const;
  /// The type of the elements. Throws: Error if the tensor is undefined.
  DType dtype() const { return body().dtype; }
  /// Where the elements are. Throws: Error if the tensor is undefined.
  Device device() const { return body().device; }
  /// The number of axes, in [0, 8]. Throws: Error if the tensor is undefined.
  int rank() const { return body().rank; }
  /// The number of elements: the product of the sizes. Throws: Error if the tensor is undefined.
  std::int64_t numel() const { return body().numel; }
  /// Size along an axis; negative axes count from the end.
  /// Throws: ShapeError if there is no such axis; Error if the tensor is undefined.
  std::int64_t size(int axis, Location where = Location::here()) const;
  /// True if the elements are in row-major order without gaps. Throws: Error if the tensor is undefined.
  bool is_contiguous() const { return body().contiguous; }

  /// The only element, converted to T; waits for a GPU that computes it.
  /// Throws: ShapeError unless there is exactly one; Error if the tensor is undefined.
  template <Element T = double>
  T item(Location where = Location::here()) const {
    return only_element<T>(where);
  }
  /// A copy of the elements in row-major order.
  /// Throws: DTypeError unless T is the tensor's type; Error if the tensor is undefined.
  template <Element T>
  std::vector<T> to_vector(Location where = Location::here()) const {
    return copied_elements<T>(where);
  }
  /// A pointer to the first element of a contiguous tensor, to read; the others follow in row-major order.
  /// Throws: DTypeError unless T is the tensor's type; ShapeError if not contiguous; DeviceError unless on the CPU; Error
  /// if the tensor is undefined.
  template <Element T>
  const T* data(Location where = Location::here()) const {
    return static_cast<const T*>(row_major(dtype_of<T>(), where));
  }
  /// A pointer to the first element of any tensor on the CPU, such as a view, to read; the others follow at `strides()`.
  /// Throws: DTypeError unless T is the tensor's type; DeviceError unless on the CPU; Error if the tensor is undefined.
  template <Element T>
  const T* strided_data(Location where = Location::here()) const {
    return static_cast<const T*>(readable(dtype_of<T>(), where));
  }
  /// Access to overwrite the elements of a contiguous tensor on the CPU. The tape treats it as an overwrite: a gradient
  /// that needs the old values throws.
  /// Throws: DTypeError unless T is the tensor's type; ShapeError if not contiguous; DeviceError unless on the CPU;
  /// TapeError if an open tape tracks the tensor and it is not a parameter; Error if it is undefined.
  template <Element T>
  Writer<T> write(Location where = Location::here());

  /// A view of a part, one index for each axis from the first: an integer drops the axis, a slice cuts it, `newaxis`
  /// adds one, `ellipsis` stands for the remaining axes: `x(2, slice(1, -1), newaxis, ellipsis)`. See indexing.h.
  ///
  /// With tensors among the indices a copy of the selected elements: a tensor of i32 or i64 selects elements of its
  /// axis, `x(i, j)` is y[k] = x[i[k], j[k]], where several broadcast together to the shape of k; a bool mask stands for
  /// as many axes as it has, of the same sizes, and selects the n elements where it is true, in row-major order. The
  /// axes of k replace the indexed ones, and come first where those are not adjacent, once integers have dropped theirs.
  /// Throws: IndexError for an index out of range or too many indices; ShapeError for a step of 0, two ellipses, a mask
  /// of other sizes, tensors that do not broadcast or more than 8 axes; DTypeError for a tensor that is neither bool,
  /// i32 nor i64; DeviceError; Error if a tensor is undefined.
  /// Source: NumPy's indexing; for integers beside tensors PyTorch's.
  Indexed operator()(const Index& first, const Index& second = detail::no_index, const Index& third = detail::no_index,
                     const Index& fourth = detail::no_index, const Index& fifth = detail::no_index,
                     const Index& sixth = detail::no_index, const Index& seventh = detail::no_index,
                     const Index& eighth = detail::no_index, const Index& ninth = detail::no_index,
                     const Index& tenth = detail::no_index, Location where = Location::here()) const;

  /// Makes the tensor a parameter, or with `wanted` false a constant: tapes record what is computed from a parameter,
  /// and `Tape::backward` adds into its `grad()`. Returns a handle of this tensor.
  /// Throws: DTypeError unless floating; TapeError if an open tape computed it, or recorded an op that has used it;
  /// Error if it is undefined.
  Tensor requires_grad(bool wanted = true, Location where = Location::here()) const;
  /// True if the tensor is a parameter: see requires_grad. Throws: Error if the tensor is undefined.
  bool is_parameter() const { return body().requires_grad; }
  /// The gradient that `Tape::backward` has accumulated; undefined before. All handles of the tensor share it. Where
  /// only a row_grad() exists, a dense tensor is made of it at each call.
  /// Throws: Error if the tensor is undefined.
  Tensor grad() const;
  /// The gradient by rows that `Tape::backward` has accumulated; undefined unless it has arrived by rows only. See
  /// EmbeddingOptions::row_gradient.
  /// Throws: Error if the tensor is undefined.
  RowGradient row_grad() const;
  /// Replaces what `grad()` returns by a copy of `gradient`; `{}` removes it.
  /// Throws: TapeError unless the tensor is a parameter; ShapeError or DTypeError unless the gradient has its shape and
  /// dtype; Error if the tensor is undefined.
  void set_grad(const Tensor& gradient, Location where = Location::here()) const;

  /// The line that made the tensor. Throws: Error if the tensor is undefined.
  Location made_at() const { return {body().file, body().line}; }
  /// True if both handles refer to one tensor, or both are undefined.
  bool is(const Tensor& other) const { return body_ == other.body_; }

  /// The tensor's body; for the library's own use. Throws: Error if the tensor is undefined.
  detail::Body& body(Location where = {}) const {
    if (!body_) throw_undefined(where);
    return *body_;
  }
  /// Releases the handle without giving back its reference, which the caller takes over; for the library's own use.
  detail::Body* disown() { return std::exchange(body_, nullptr); }
  /// A handle that takes over one reference of the caller; for the library's own use.
  static Tensor adopt(detail::Body* body) {
    Tensor tensor;
    tensor.body_ = body;
    return tensor;
  }

 private:
  [[noreturn]] static void throw_undefined(Location where);
  // Exported, and without a constraint, which compilers mangle differently.
  template <class T>
  T only_element(Location where) const;
  template <class T>
  std::vector<T> copied_elements(Location where) const;
  const void* row_major(DType dtype, Location where) const;
  const void* readable(DType dtype, Location where) const;
  void* writable(DType dtype, Location where);

  detail::Body* body_ = nullptr;
};

/// The gradient of a table of which only some rows have one: a sparse gradient. Rows that are not listed have a
/// gradient of 0.
struct RowGradient {
  Tensor rows;    ///< (n), i64, ascending: the indices of the rows
  Tensor values;  ///< (n, …): the gradient of each of these rows

  /// True if there is a gradient.
  bool defined() const { return rows.defined(); }
};

/// The guard that `Tensor::write` returns: a contiguous range of elements that may be overwritten. While it lives, a
/// gradient that needs the values of the tensor throws.
template <class T>
class Writer : detail::Immovable {
 public:
  /// Ends the access and marks the tensor as overwritten.
  ~Writer() { detail::end_write(tensor_, where_); }

  /// A pointer to the first element.
  T* data() const { return data_; }
  /// The number of elements.
  std::int64_t size() const { return tensor_.numel(); }
  /// Element i in row-major order, i in [0, size()); not checked.
  T& operator[](std::int64_t i) const { return data_[i]; }
  /// A pointer to the first element.
  T* begin() const { return data_; }
  /// A pointer behind the last element.
  T* end() const { return data_ + size(); }

 private:
  friend class Tensor;
  Writer(Tensor tensor, T* data, Location where) : tensor_(std::move(tensor)), data_(data), where_(where) {}
  Tensor tensor_;
  T* data_;
  Location where_;
};

template <Element T>
Writer<T> Tensor::write(Location where) {
  return Writer<T>(*this, static_cast<T*>(writable(dtype_of<T>(), where)), where);
}

/// The tensor as NumPy prints an array: 8 digits at most, columns aligned, more than 1000 elements shortened. Waits for
/// a GPU that computes it.
std::string to_string(const Tensor& tensor);
/// Writes the tensor as NumPy prints an array: 8 digits at most, columns aligned, more than 1000 elements shortened.
/// Returns `out`. Waits for a GPU that computes it.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// An operand: a tensor by reference or a plain number, with the location of the call. A number is a weak scalar: it has
/// the dtype of the tensor beside it, in arithmetic f32 for a half. Functions take an Arg as a parameter, and store none.
class Arg {
 public:
  /// The kind of the operand: a tensor, or a plain number of type bool, integer or floating.
  enum class Kind : std::uint8_t { tensor, boolean, integer, floating };

  /// A tensor, which must outlive the call, with the location of the caller.
  Arg(const Tensor& tensor, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&tensor), location_{file, line} {}
  /// A tensor with the location of another call: for a function that passes its own caller's location on.
  Arg(const Tensor& tensor, Location where) : tensor_(&tensor), location_(where) {}
  /// A plain number with the location of the caller; an unsigned integer above the largest std::int64_t becomes
  /// floating.
  template <class T>
    requires std::is_arithmetic_v<T>
  Arg(T number, const char* file = __builtin_FILE(), int line = __builtin_LINE()) : location_{file, line} {
    if constexpr (std::is_integral_v<T>) {
      if (std::cmp_greater(+number, std::numeric_limits<std::int64_t>::max())) {
        kind_ = Kind::floating;
        floating_ = static_cast<double>(number);
        return;
      }
      kind_ = std::is_same_v<T, bool> ? Kind::boolean : Kind::integer;
      integer_ = static_cast<std::int64_t>(number);
    } else {
      kind_ = Kind::floating;
      floating_ = static_cast<double>(number);
    }
  }

  /// True for a tensor, false for a plain number.
  bool is_tensor() const { return kind_ == Kind::tensor; }
  /// Whether the operand is a tensor, or of which type the number is.
  Kind kind() const { return kind_; }
  /// The tensor; null for a plain number.
  const Tensor* tensor() const { return kind_ == Kind::tensor ? tensor_ : nullptr; }
  /// The plain number, whatever its type, as double; meaningless for a tensor.
  double number() const { return kind_ == Kind::floating ? floating_ : static_cast<double>(integer_); }
  /// The plain number if it is a bool or an integer; meaningless otherwise.
  std::int64_t integer() const { return integer_; }
  /// The caller's location.
  const Location& location() const { return location_; }

  /// True for a number, and for a tensor that is defined.
  bool defined() const { return !is_tensor() || tensor_->defined(); }
  /// The sizes of all axes; () for a number. Throws: Error if the tensor is undefined.
  Shape shape() const { return is_tensor() ? tensor_->shape() : Shape(); }
  /// The type of the elements; of a number, which takes that of the tensor it is combined with, bool, i64 or f32.
  /// Throws: Error if the tensor is undefined.
  DType dtype() const {
    if (is_tensor()) return tensor_->dtype();
    return kind_ == Kind::boolean ? DType::boolean : kind_ == Kind::integer ? DType::i64 : DType::f32;
  }
  /// Where the elements are; for a number `default_device()`. Throws: Error if the tensor is undefined.
  Device device() const { return is_tensor() ? tensor_->device() : default_device(); }
  /// The number of axes, in [0, 8]; 0 for a number. Throws: Error if the tensor is undefined.
  int rank() const { return is_tensor() ? tensor_->rank() : 0; }
  /// The number of elements; 1 for a number. Throws: Error if the tensor is undefined.
  std::int64_t numel() const { return is_tensor() ? tensor_->numel() : 1; }
  /// Size along an axis; negative axes count from the end.
  /// Throws: ShapeError if there is no such axis, as for a number; Error if the tensor is undefined.
  std::int64_t size(int axis) const {
    if (!is_tensor()) refuse_axis(axis);
    return tensor_->size(axis, location_);
  }
  /// The only element, converted to T; waits for a GPU that computes it.
  /// Throws: ShapeError unless there is exactly one; Error if the tensor is undefined.
  template <Element T = double>
  T item() const {
    if (is_tensor()) return tensor_->item<T>(location_);
    return static_cast<T>(kind_ == Kind::floating ? static_cast<T>(floating_) : static_cast<T>(integer_));
  }

 private:
  [[noreturn]] void refuse_axis(int axis) const;

  union {
    const Tensor* tensor_;
    double floating_;
    std::int64_t integer_;
  };
  Location location_;
  Kind kind_ = Kind::tensor;
};

}  // namespace reel

// Last, since it needs the tensor whole; here, since x(1) needs it wherever there are tensors.
#include <reel/indexing.h>
