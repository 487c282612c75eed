/* A program in C99 that uses the whole interface: program PLUGIN WEIGHTS. Fails where a result is not what it should be. */

#include <math.h>
#include <reel/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int condition, const char* sentence) {
  if (condition) return;
  fprintf(stderr, "program: not so: %s; the last error is '%s'\n", sentence, reel_last_error());
  exit(1);
}

static reel_tensor* matrix(const float* values, int64_t rows, int64_t columns) {
  int64_t sizes[2];
  reel_tensor* made = NULL;
  sizes[0] = rows;
  sizes[1] = columns;
  check(reel_tensor_create(REEL_F32, 2, sizes, values, (size_t)(rows * columns) * sizeof *values, &made) == REEL_OK,
        "a matrix is made");
  return made;
}

static void use_ops(void) {
  static const float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {1, 0, -1};
  reel_tensor *x = matrix(a, 2, 3), *y = matrix(b, 3, 1), *product = NULL;
  const reel_tensor* operands[2];
  float found[2] = {0, 0};
  operands[0] = x;
  operands[1] = y;
  check(reel_op_run("matmul", operands, 2, &product) == REEL_OK, "matmul runs");
  check(reel_tensor_rank(product) == 2 && reel_tensor_size(product, 0) == 2 && reel_tensor_size(product, -1) == 1,
        "the product is (2, 1)");
  check(reel_tensor_copy_out(product, found, sizeof found) == REEL_OK && found[0] == -2 && found[1] == -2,
        "the product is [[-2], [-2]]");
  operands[1] = x;
  check(reel_op_run("matmul", operands, 2, &product) == REEL_SHAPE_ERROR && reel_last_status() == REEL_SHAPE_ERROR,
        "inner sizes that differ are a shape error");
  check(strstr(reel_last_error(), "reel_op_run: matmul: inner sizes differ") != NULL,
        "the sentence names op and fault");
  reel_tensor_free(product);
  reel_tensor_free(y);
  reel_tensor_free(x);
}

static void use_model(const char* plugin, const char* weights) {
  static const float points[4] = {0.f, 0.1f, 0.9f, -0.9f};
  reel_model* model = NULL;
  reel_tensor *x = matrix(points, 2, 2), *result = NULL;
  const reel_tensor* inputs[1];
  const float* found;
  size_t count = 0;
  inputs[0] = x;
  check(reel_model_load(plugin, weights, &model) == REEL_OK, "the model is loaded");
  check(strcmp(reel_model_name(model), "classifier") == 0 && reel_model_parameter_count(model) == 162,
        "it is the classifier with 162 parameters");
  check(reel_model_run(model, inputs, 1, &result, 1, &count) == REEL_OK && count == 1, "the model has one result");
  reel_model_free(model);
  found = reel_tensor_data(result);
  check(fabs(found[0] + found[1] - 1) < 1e-6 && found[1] > 0.5, "the first point is within the circle");
  check(fabs(found[2] + found[3] - 1) < 1e-6 && found[2] > 0.5, "the second point is outside");
  reel_tensor_free(result);
  reel_tensor_free(x);
}

static void use_weights(const char* path) {
  reel_weights* weights = NULL;
  reel_tensor* bias = NULL;
  size_t i;
  int found = 0;
  check(reel_weights_load(path, &weights) == REEL_OK && reel_weights_count(weights) == 4, "the file has four tensors");
  for (i = 0; i < reel_weights_count(weights); ++i) found |= strcmp(reel_weights_name(weights, i), "hidden.bias") == 0;
  check(found && reel_weights_tensor(weights, "hidden.bias", &bias) == REEL_OK, "hidden.bias is one of them");
  reel_weights_free(weights);
  check(reel_tensor_numel(bias) == 32 && reel_tensor_bytes(bias) == 128 && reel_tensor_dtype(bias) == REEL_F32,
        "it has 32 numbers of f32");
  reel_tensor_free(bias);
}

int main(int count, char** arguments) {
  check(count == 3, "the arguments are PLUGIN and WEIGHTS");
  check(reel_c_version() >= REEL_C_VERSION && reel_version()[0] != '\0', "the library is as new as the header");
  check(reel_last_status() == REEL_OK && reel_last_error()[0] == '\0', "nothing has failed yet");
  use_ops();
  use_model(arguments[1], arguments[2]);
  use_weights(arguments[2]);
  puts("all is as it should be");
  return 0;
}
