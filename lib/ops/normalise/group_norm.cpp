#include <reel/ops/normalise.h>

#include "../convolution/channels.h"
#include "../if_needed.h"
#include "../registry.h"
#include "row_norm.h"

namespace reel {

using namespace detail;

// The elements of a group are contiguous, so a group is a row.

constexpr OpInfo group_norm_op = row_norm_op("group_norm");
constexpr OpInfo instance_norm_op = row_norm_op("instance_norm");

namespace {

const Tensor& checked(const OpInfo& op, const Arg& x, const GroupNormOptions& options, int least_rank) {
  const Tensor& tensor = tensor_of(op.name, x);
  check_floating(op.name, tensor, x.location());
  check_epsilon(op.name, options.epsilon, x.location());
  check_layout(op.name, options.layout, x.location());
  if (tensor.rank() < least_rank)
    fail<ShapeError>(op.name, x.location(), "x {} has a rank below {}: it wants examples, channels{}", describe(tensor),
                     least_rank, least_rank > 2 ? ", and axes to take means over" : "");
  return tensor;
}

// `batch` has its channels at axis 1.
Tensor by_groups(const OpInfo& op, const Arg& x, const Tensor& batch, std::int64_t groups, const Arg* weight,
                 const Arg* bias, const GroupNormOptions& options) {
  std::int64_t examples = batch.size(0), channels = batch.size(1), size = 1;
  for (int axis = 2; axis < batch.rank(); ++axis) size *= batch.size(axis);
  auto for_elements = [&](const char* name, const Arg* given, double otherwise) {
    Tensor parameter = norm_parameter(op.name, name, given, x, {channels}, otherwise);
    if (size == 1) return parameter;
    // Rows of the CPU's kernel that are not short may have one number for each channel.
    Tensor wide = expand_if_needed(unsqueeze(parameter, 1), {channels, size});
    return wide.device() == cpu && size > 64 ? wide : contiguous_if_needed(wide);
  };
  Tensor w = for_elements("weight", weight, 1), b = for_elements("bias", bias, 0);
  Tensor y = run_row_norm(op, Arg(batch, x.location()), examples * groups, w, &b,
                          {options.epsilon, channels / groups * size, true});
  return channels_placed(y, options.layout);
}

Tensor group_norm_with(const Arg& x, std::int64_t groups, const Arg* weight, const Arg* bias,
                       const GroupNormOptions& options) {
  OpScope caller(x.location(), group_norm_op.name);
  Tensor batch = channels_first(checked(group_norm_op, x, options, 2), options.layout);
  if (groups < 1 || batch.size(1) % groups != 0)
    fail<ShapeError>(group_norm_op.name, x.location(), "the {} channels of x {} are not {} groups of one size",
                     batch.size(1), describe(*x.tensor()), groups);
  return by_groups(group_norm_op, x, batch, groups, weight, bias, options);
}

Tensor instance_norm_with(const Arg& x, const Arg* weight, const Arg* bias, const GroupNormOptions& options) {
  OpScope caller(x.location(), instance_norm_op.name);
  Tensor batch = channels_first(checked(instance_norm_op, x, options, 3), options.layout);
  std::int64_t channels = batch.size(1), elements = 1;
  for (int axis = 2; axis < batch.rank(); ++axis) elements *= batch.size(axis);
  if (elements == 1)
    fail<ShapeError>(instance_norm_op.name, x.location(),
                     "x {} has one element a channel, whose deviation from the mean is 0", describe(*x.tensor()));
  // At least one group, so that nothing is divided by zero channels.
  return by_groups(instance_norm_op, x, batch, std::max<std::int64_t>(channels, 1), weight, bias, options);
}

}  // namespace

Tensor group_norm(const Arg& x, std::int64_t groups, const Arg& weight, const Arg& bias, GroupNormOptions options) {
  return group_norm_with(x, groups, &weight, &bias, options);
}

Tensor group_norm(const Arg& x, std::int64_t groups, GroupNormOptions options) {
  return group_norm_with(x, groups, nullptr, nullptr, options);
}

Tensor instance_norm(const Arg& x, const Arg& weight, const Arg& bias, GroupNormOptions options) {
  return instance_norm_with(x, &weight, &bias, options);
}

Tensor instance_norm(const Arg& x, GroupNormOptions options) {
  return instance_norm_with(x, nullptr, nullptr, options);
}

OpList detail::group_norm_ops() {
  static constexpr const OpInfo* ops[] = {&group_norm_op, &instance_norm_op};
  return ops;
}

}  // namespace reel
