/* Pins what programs in C are compiled with: numbers and sizes that must never change within a version of the interface. */

#include <reel/c.h>

_Static_assert(REEL_C_VERSION == 1, "a new version adds its numbers here");
_Static_assert(REEL_MAX_RANK == 8, "the most axes");

_Static_assert(REEL_OK == 0 && REEL_ERROR == 1 && REEL_ARGUMENT_ERROR == 2 && REEL_SHAPE_ERROR == 3 &&
                   REEL_DTYPE_ERROR == 4 && REEL_INDEX_ERROR == 5 && REEL_DEVICE_ERROR == 6 && REEL_FILE_ERROR == 7 &&
                   REEL_MISFIT_ERROR == 8 && REEL_MEMORY_ERROR == 9 && REEL_INTERNAL_ERROR == 10,
               "the numbers of statuses");
_Static_assert(REEL_F32 == 0 && REEL_F64 == 1 && REEL_BF16 == 2 && REEL_F16 == 3 && REEL_I32 == 4 && REEL_I64 == 5 &&
                   REEL_U8 == 6 && REEL_BOOL == 7 && REEL_I8 == 8 && REEL_I16 == 9,
               "the numbers of dtypes");
_Static_assert(sizeof(reel_status) == sizeof(int) && sizeof(reel_dtype) == sizeof(int), "a status is returned as int");

/* Each function has the type that programs call it with; a pointer of another type does not compile. */
struct Interface {
  int32_t (*c_version)(void);
  const char* (*version)(void);
  reel_status (*last_status)(void);
  const char* (*last_error)(void);
  const char* (*status_name)(int32_t);
  reel_status (*set_thread_count)(int32_t);
  reel_status (*tensor_create)(int32_t, int32_t, const int64_t*, const void*, size_t, reel_tensor**);
  reel_status (*tensor_wrap)(int32_t, int32_t, const int64_t*, void*, size_t, void (*)(void*), void*, reel_tensor**);
  void (*tensor_free)(reel_tensor*);
  int32_t (*tensor_rank)(const reel_tensor*);
  int64_t (*tensor_size)(const reel_tensor*, int32_t);
  int64_t (*tensor_numel)(const reel_tensor*);
  int32_t (*tensor_dtype)(const reel_tensor*);
  size_t (*tensor_bytes)(const reel_tensor*);
  const void* (*tensor_data)(const reel_tensor*);
  reel_status (*tensor_copy_out)(const reel_tensor*, void*, size_t);
  reel_status (*tensor_convert)(const reel_tensor*, int32_t, reel_tensor**);
  reel_status (*tensor_reshape)(const reel_tensor*, int32_t, const int64_t*, reel_tensor**);
  reel_status (*tensor_rows)(const reel_tensor*, int64_t, int64_t, reel_tensor**);
  reel_status (*tensor_concat)(const reel_tensor* const*, size_t, int32_t, reel_tensor**);
  reel_status (*op_run)(const char*, const reel_tensor* const*, size_t, reel_tensor**);
  size_t (*op_count)(void);
  const char* (*op_name)(size_t);
  reel_status (*weights_load)(const char*, reel_weights**);
  void (*weights_free)(reel_weights*);
  size_t (*weights_count)(const reel_weights*);
  const char* (*weights_name)(const reel_weights*, size_t);
  reel_status (*weights_tensor)(const reel_weights*, const char*, reel_tensor**);
  reel_status (*model_load)(const char*, const char*, reel_model**);
  void (*model_free)(reel_model*);
  const char* (*model_name)(const reel_model*);
  int64_t (*model_parameter_count)(const reel_model*);
  reel_status (*model_run)(const reel_model*, const reel_tensor* const*, size_t, reel_tensor**, size_t, size_t*);
};

extern const struct Interface reel_interface;
const struct Interface reel_interface = {
    reel_c_version,      reel_version,          reel_last_status,   reel_last_error,
    reel_status_name,    reel_set_thread_count, reel_tensor_create, reel_tensor_wrap,
    reel_tensor_free,    reel_tensor_rank,      reel_tensor_size,   reel_tensor_numel,
    reel_tensor_dtype,   reel_tensor_bytes,     reel_tensor_data,   reel_tensor_copy_out,
    reel_tensor_convert, reel_tensor_reshape,   reel_tensor_rows,   reel_tensor_concat,
    reel_op_run,         reel_op_count,         reel_op_name,       reel_weights_load,
    reel_weights_free,   reel_weights_count,    reel_weights_name,  reel_weights_tensor,
    reel_model_load,     reel_model_free,       reel_model_name,    reel_model_parameter_count,
    reel_model_run,
};
