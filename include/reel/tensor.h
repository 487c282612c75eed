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

template <class T>
concept Element = is_element_v<T>;

/// An array of numbers on a device: a handle, one pointer wide. Copies share the elements; views (slices, transposes)
/// share them too. `Tensor{}` is undefined: testable, and an error in any op.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) noexcept : body_(other.body_) {
    if (body_) body_->references.retain();
  }
  Tensor(Tensor&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Tensor& operator=(const Tensor& other) noexcept {
    Tensor copy(other);
    std::swap(body_, copy.body_);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(body_, other.body_);
    if (&other != this) other.reset();
    return *this;
  }
  ~Tensor() { reset(); }

  bool defined() const { return body_ != nullptr; }
  void reset() noexcept {
    if (detail::Body* body = std::exchange(body_, nullptr); body && body->references.release()) detail::destroy(body);
  }

  // The accessors below throw Error on an undefined tensor.
  Shape shape() const;
  /// Elements to skip from one index to the next, per axis.
  Shape strides() const;
  DType dtype() const { return body().dtype; }
  Device device() const { return body().device; }
  int rank() const { return body().rank; }
  std::int64_t numel() const { return body().numel; }
  /// Size along an axis; negative axes count from the end. Throws: ShapeError if there is no such axis.
  std::int64_t size(int axis, Location where = Location::here()) const;
  /// Elements lie in row-major order without gaps.
  bool is_contiguous() const { return body().contiguous; }

  /// The only element, converted to T. Throws: ShapeError unless there is exactly one.
  template <Element T = double>
  T item(Location where = Location::here()) const;
  /// The elements in row-major order. Throws: DTypeError unless T is the tensor's type.
  template <Element T>
  std::vector<T> to_vector(Location where = Location::here()) const;
  /// The first element, to read; the others follow at `strides()`. Throws: DTypeError unless T is the tensor's type.
  template <Element T>
  const T* data(Location where = Location::here()) const {
    return static_cast<const T*>(readable(dtype_of<T>(), where));
  }
  /// Access to overwrite the elements of a contiguous tensor. It counts as an overwrite: a gradient that needs the old
  /// values throws. Throws: DTypeError; ShapeError if not contiguous; TapeError if an open tape computed the tensor.
  template <Element T>
  Writer<T> write(Location where = Location::here());

  /// A view of a part, one index for each axis from the first: an integer drops the axis, a slice cuts it, `newaxis`
  /// adds one, `ellipsis` stands for the axes left over: `x(2, slice(1, -1), newaxis, ellipsis)`. See indexing.h.
  /// Throws: IndexError for an integer out of range or too many indices; ShapeError for a step of 0 or two ellipses.
  Indexed operator()(const Index& first, const Index& second = detail::no_index, const Index& third = detail::no_index,
                     const Index& fourth = detail::no_index, const Index& fifth = detail::no_index,
                     const Index& sixth = detail::no_index, const Index& seventh = detail::no_index,
                     const Index& eighth = detail::no_index, const Index& ninth = detail::no_index,
                     const Index& tenth = detail::no_index, Location where = Location::here()) const;

  /// Makes this a parameter: tapes record what is computed from it, and `Tape::backward` adds into `grad()`.
  /// Returns the same tensor. Throws: DTypeError unless floating; TapeError if an open tape computed it.
  Tensor requires_grad(bool wanted = true, Location where = Location::here()) const;
  /// Whether it is a parameter.
  bool is_parameter() const { return body().requires_grad; }
  /// What `Tape::backward` has added up; undefined before. Shared by all copies of this handle. Where there is only a
  /// row_grad(), a dense tensor is made of it each time.
  Tensor grad() const;
  /// The same by rows, where it has only come by rows; else undefined. See EmbeddingOptions::row_gradient.
  RowGradient row_grad() const;
  /// Replaces what `grad()` returns by a copy; `{}` forgets it. Throws: ShapeError, DTypeError unless it fits.
  void set_grad(const Tensor& gradient, Location where = Location::here()) const;

  /// Where the tensor was made.
  Location made_at() const { return {body().file, body().line}; }
  /// True if both handles stand for the same tensor.
  bool is(const Tensor& other) const { return body_ == other.body_; }

  /// The body; for the library's own use.
  detail::Body& body(Location where = {}) const {
    if (!body_) throw_undefined(where);
    return *body_;
  }
  /// Gives up the reference that this holds; for the library's own use.
  detail::Body* disown() { return std::exchange(body_, nullptr); }
  /// Takes ownership of one reference; for the library's own use.
  static Tensor adopt(detail::Body* body) {
    Tensor tensor;
    tensor.body_ = body;
    return tensor;
  }

 private:
  [[noreturn]] static void throw_undefined(Location where);
  const void* readable(DType dtype, Location where) const;
  void* writable(DType dtype, Location where);

  detail::Body* body_ = nullptr;
};

/// The gradient of a table of which some rows have one, and the others none.
struct RowGradient {
  Tensor rows;    ///< (n), i64, rising
  Tensor values;  ///< (n, …)

  bool defined() const { return rows.defined(); }
};

/// The guard that `Tensor::write` returns: a contiguous range of elements. While it lives, no gradient can be had that
/// needs the tensor's values.
template <class T>
class Writer {
 public:
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { detail::end_write(tensor_, where_); }

  T* data() const { return data_; }
  std::int64_t size() const { return tensor_.numel(); }
  T& operator[](std::int64_t i) const { return data_[i]; }
  T* begin() const { return data_; }
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

/// As NumPy prints an array: 8 digits at most, columns aligned, more than 1000 elements shortened.
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// An operand: a tensor by reference or a plain number, and the place of the call. A plain number is weak: it takes
/// the dtype of the tensor it meets. Functions take it; nothing stores it.
class Arg {
 public:
  enum class Kind : std::uint8_t { tensor, boolean, integer, floating };

  Arg(const Tensor& tensor, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&tensor), location_{file, line} {}
  /// For a function that passes its own caller's place on.
  Arg(const Tensor& tensor, Location where) : tensor_(&tensor), location_(where) {}
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

  bool is_tensor() const { return kind_ == Kind::tensor; }
  Kind kind() const { return kind_; }
  /// The tensor; null for a number.
  const Tensor* tensor() const { return kind_ == Kind::tensor ? tensor_ : nullptr; }
  /// The number, whatever its kind.
  double number() const { return kind_ == Kind::floating ? floating_ : static_cast<double>(integer_); }
  /// The number, unless it is floating.
  std::int64_t integer() const { return integer_; }
  const Location& location() const { return location_; }

 private:
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
