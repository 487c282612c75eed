#pragma once

/// \file
/// The C interface (C99) of libreel_c.so: tensors, files of weights, some ops by name, and models, which are C++ code in a
/// plugin (reel/c/plugin.h). It is for programs that run models; training is C++'s.
///
/// - A function that can fail returns a status, REEL_OK or what has failed, and then leaves its results as they were.
///   `reel_last_error` has the sentence. No C++ exception leaves a function.
/// - A handle (`reel_tensor *`, `reel_weights *`, `reel_model *`) is owned by the caller, who frees it once. Freeing NULL
///   does nothing. Handles are independent: a tensor outlives the file or the model that it came from.
/// - Any thread may use any handle, several threads one handle at a time too, as long as none of them frees it meanwhile. A
///   thread must not be cancelled (pthread_cancel) within a function.
/// - A dtype is passed as a number, one of `reel_dtype`; another one is an error.
/// - Every tensor here is on the CPU and contiguous: its elements are in row-major order without gaps.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Constants of the interface.
enum {
  REEL_C_VERSION = 1,  ///< of this header; a library with a larger `reel_c_version()` has all that it declares
  REEL_MAX_RANK = 8    ///< the most axes that a tensor can have
};

/// Status codes: the kind of failure.
typedef enum reel_status {
  REEL_OK = 0,              ///< nothing
  REEL_ERROR = 1,           ///< the use of the library, in a way that has no status of its own
  REEL_ARGUMENT_ERROR = 2,  ///< an argument of the C function: a null pointer, an unknown name, a size
  REEL_SHAPE_ERROR = 3,     ///< shapes, sizes or axes do not fit
  REEL_DTYPE_ERROR = 4,     ///< an op does not take an element type
  REEL_INDEX_ERROR = 5,     ///< an index is out of range
  REEL_DEVICE_ERROR = 6,    ///< a device does not exist, or lacks an op
  REEL_FILE_ERROR = 7,      ///< a file cannot be read, or is not what it should be
  REEL_MISFIT_ERROR = 8,    ///< weights do not fit the model
  REEL_MEMORY_ERROR = 9,    ///< there is not enough memory
  REEL_INTERNAL_ERROR = 10  ///< the library or a plugin itself: please report it
} reel_status;

/// The type of the elements of a tensor.
typedef enum reel_dtype {
  REEL_F32 = 0,   ///< float
  REEL_F64 = 1,   ///< double
  REEL_BF16 = 2,  ///< bfloat16, of 16 bits: the upper half of a float
  REEL_F16 = 3,   ///< IEEE 754 binary16
  REEL_I32 = 4,   ///< int32_t
  REEL_I64 = 5,   ///< int64_t
  REEL_U8 = 6,    ///< uint8_t
  REEL_BOOL = 7,  ///< a byte, 0 or 1
  REEL_I8 = 8,    ///< int8_t
  REEL_I16 = 9    ///< int16_t
} reel_dtype;

/// An array of numbers.
typedef struct reel_tensor reel_tensor;
/// The named tensors of a file.
typedef struct reel_weights reel_weights;
/// A model of a plugin with its weights.
typedef struct reel_model reel_model;

/// The version of the C interface that the library has: `REEL_C_VERSION` of its header.
int32_t reel_c_version(void);
/// The release of reel that the program runs with, such as "0.2.0".
const char* reel_version(void);

/// The status of the last call of this thread that failed; REEL_OK if none has.
reel_status reel_last_status(void);
/// The sentence of the last call of this thread that failed, UTF-8: the function, the shapes or the file involved, and for an
/// error within a model its line. Empty if none has failed. It is valid until the next failure on this thread, and at most
/// 4095 bytes long.
const char* reel_last_error(void);
/// The name of a status, such as "shape error"; "unknown status" for a number that is none.
const char* reel_status_name(int32_t status);

/// Sets the number of threads that a large op of the calling thread may use, itself included; at first that of OpenMP. A
/// server whose own threads run models sets 1 in each of them.
/// Fails: REEL_ERROR if `count` is less than 1.
reel_status reel_set_thread_count(int32_t count);

/// Makes a tensor of a copy of the caller's elements: `sizes` has `rank` sizes, which may be NULL for rank 0; `data` has
/// `bytes` bytes at any address, which may be NULL if there are no elements.
/// Fails: REEL_ARGUMENT_ERROR if `bytes` is not that of all elements, or a bool is neither 0 nor 1; REEL_SHAPE_ERROR for a
/// rank outside [0, 8] or a negative size; REEL_DTYPE_ERROR for an unknown dtype; REEL_MEMORY_ERROR.
reel_status reel_tensor_create(int32_t dtype, int32_t rank, const int64_t* sizes, const void* data, size_t bytes,
                               reel_tensor** result);
/// Makes a tensor over the caller's elements without a copy: `data` has `bytes` bytes, aligned to the size of an element.
/// `release(owner)` is called once, by the thread that drops the last tensor over these elements; until then they must stay
/// where they are, and as they are. `release` may be NULL. If this fails, `release` is not called.
/// Fails: REEL_ARGUMENT_ERROR if `bytes` is not that of all elements, or a bool is neither 0 nor 1; REEL_SHAPE_ERROR for a
/// rank outside [0, 8], a negative size or elements that are not aligned; REEL_DTYPE_ERROR for an unknown dtype;
/// REEL_MEMORY_ERROR.
reel_status reel_tensor_wrap(int32_t dtype, int32_t rank, const int64_t* sizes, void* data, size_t bytes,
                             void (*release)(void* owner), void* owner, reel_tensor** result);
/// Frees a handle of a tensor.
void reel_tensor_free(reel_tensor* tensor);

/// The number of axes; -1 for NULL.
int32_t reel_tensor_rank(const reel_tensor* tensor);
/// The size along an axis; negative axes count from the end; -1 if there is no such axis, and for NULL.
int64_t reel_tensor_size(const reel_tensor* tensor, int32_t axis);
/// The number of elements; -1 for NULL.
int64_t reel_tensor_numel(const reel_tensor* tensor);
/// The type of the elements as a `reel_dtype`; -1 for NULL.
int32_t reel_tensor_dtype(const reel_tensor* tensor);
/// The bytes of all elements; 0 for NULL.
size_t reel_tensor_bytes(const reel_tensor* tensor);
/// The elements in row-major order, to read, as long as the handle lives; NULL for NULL.
const void* reel_tensor_data(const reel_tensor* tensor);
/// Copies the elements in row-major order to a buffer of `bytes` bytes.
/// Fails: REEL_ARGUMENT_ERROR if `bytes` is not `reel_tensor_bytes`.
reel_status reel_tensor_copy_out(const reel_tensor* tensor, void* buffer, size_t bytes);

/// Converts the elements to a dtype, as a cast in C does; bfloat16 and binary16 are rounded to nearest.
/// Fails: REEL_DTYPE_ERROR for an unknown dtype; REEL_MEMORY_ERROR.
reel_status reel_tensor_convert(const reel_tensor* tensor, int32_t dtype, reel_tensor** result);
/// Gives the elements, in their order, another shape, in which one size may be -1: it follows from the others. The elements
/// are shared.
/// Fails: REEL_SHAPE_ERROR if the number of elements differs.
reel_status reel_tensor_reshape(const reel_tensor* tensor, int32_t rank, const int64_t* sizes, reel_tensor** result);
/// Takes the part [begin, end) along the first axis. The elements are shared.
/// Fails: REEL_INDEX_ERROR unless 0 <= begin <= end <= size; REEL_SHAPE_ERROR for rank 0.
reel_status reel_tensor_rows(const reel_tensor* tensor, int64_t begin, int64_t end, reel_tensor** result);
/// Joins `count` >= 1 tensors along an existing axis; negative axes count from the end.
/// Fails: REEL_SHAPE_ERROR if other sizes differ or there is no such axis; REEL_DTYPE_ERROR if dtypes do not combine;
/// REEL_MEMORY_ERROR.
reel_status reel_tensor_concat(const reel_tensor* const* tensors, size_t count, int32_t axis, reel_tensor** result);

/// Runs an op on tensors. Shapes broadcast and dtypes are combined as in NumPy; a number is a tensor of rank 0.
///
/// - of one tensor: abs ceil cos erf exp floor gelu isfinite isnan log log1p logical_not neg reciprocal relu round rsqrt
///   sigmoid sign silu sin softplus sqrt square tan tanh
/// - of one tensor, to a number of rank 0: max mean min prod sum
/// - of one tensor, along its last axis: argmax argmin log_softmax softmax; transposed in its last two axes: transpose
/// - of two: add div equal floor_divide greater greater_equal less less_equal matmul maximum minimum mod mul not_equal pow
///   sub
/// - of three: clamp (x, low, high), where (condition, a, b)
///
/// Fails: REEL_ARGUMENT_ERROR for another name or number of tensors; what the op finds wrong.
reel_status reel_op_run(const char* name, const reel_tensor* const* inputs, size_t count, reel_tensor** result);
/// The number of names that `reel_op_run` takes.
size_t reel_op_count(void);
/// The name of an op, in alphabetical order; NULL for an index that is not less than `reel_op_count()`.
const char* reel_op_name(size_t index);

/// Loads all tensors of a file: safetensors, or of `torch.save`. The path of a `.safetensors.index.json` gives those of all
/// files that it names.
/// Fails: REEL_FILE_ERROR if it cannot be read or breaks a rule of its format; REEL_MEMORY_ERROR.
reel_status reel_weights_load(const char* path, reel_weights** result);
/// Frees a handle of a file's tensors.
void reel_weights_free(reel_weights* weights);
/// The number of tensors; 0 for NULL.
size_t reel_weights_count(const reel_weights* weights);
/// The name of a tensor, in the order of the file, as long as the handle lives; NULL for an index that is not less than
/// `reel_weights_count`, and for NULL.
const char* reel_weights_name(const reel_weights* weights, size_t index);
/// The tensor of the given name; its elements are shared.
/// Fails: REEL_ERROR if there is none.
reel_status reel_weights_tensor(const reel_weights* weights, const char* name, reel_tensor** result);

/// Loads the model of a plugin, `plugin` being the path of its shared library, and its weights from a file that
/// `reel_weights_load` or Keras's HDF5 reader can read; without a file, `weights` being NULL, it keeps its initial ones. The
/// model is out of training mode. A plugin stays loaded until the program ends.
/// Fails: REEL_FILE_ERROR if a file cannot be read, is no plugin, or is one of another release or with a reel of its own;
/// REEL_MISFIT_ERROR, with a line for each tensor, if the weights do not fit; what the model's constructor throws.
reel_status reel_model_load(const char* plugin, const char* weights, reel_model** result);
/// Frees a model.
void reel_model_free(reel_model* model);
/// The name that the plugin gives its model, as long as the handle lives; NULL for NULL.
const char* reel_model_name(const reel_model* model);
/// The number of elements of all parameters; -1 for NULL.
int64_t reel_model_parameter_count(const reel_model* model);
/// Calls a model with `input_count` tensors, and writes handles of its results, of which it has at most `capacity`, to
/// `results`, and how many to `result_count`. Nothing is recorded for gradients. Several threads may call one model.
/// Fails: REEL_ARGUMENT_ERROR if the model takes another number of tensors, or has more results, in which case
/// `result_count` says how many; what the model finds wrong, naming the line of its code.
reel_status reel_model_run(const reel_model* model, const reel_tensor* const* inputs, size_t input_count,
                           reel_tensor** results, size_t capacity, size_t* result_count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
