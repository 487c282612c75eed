#pragma once

#include <span>
#include <string>

#include <reel/logging/writer.h>

namespace reel::logging {

/// The tags of the values of TensorBoard's hyper-parameter plugin, whose name is "hparams".
constexpr const char* experiment_tag = "_hparams_/experiment";
/// The tag of the value with the hyper-parameters of a run.
constexpr const char* session_tag = "_hparams_/session_start_info";

/// The message of the names and kinds of hyper-parameters and the tags of metrics.
/// Source: TensorBoard's plugins/hparams/api.proto and plugin_data.proto.
std::string experiment_of(std::span<const NamedHyperParameter> parameters, std::span<const NamedScalar> metrics,
                          double wall_time);
/// The message of the hyper-parameters of a run.
std::string session_of(std::span<const NamedHyperParameter> parameters, double wall_time);

}  // namespace reel::logging
