#include "hyper_parameters.h"

#include <cstdint>

#include "protobuf.h"

namespace reel::logging {

namespace {

using Kind = HyperParameter::Kind;

// The numbers of the fields of HParamsPluginData, Experiment, HParamInfo, MetricInfo, MetricName and SessionStartInfo.
constexpr std::uint32_t data_experiment = 2, data_session = 3;
constexpr std::uint32_t experiment_time = 3, experiment_parameters = 4, experiment_metrics = 5;
constexpr std::uint32_t parameter_name = 1, parameter_type = 4, metric_name = 1, metric_tag = 2;
constexpr std::uint32_t session_parameters = 1, session_start_time = 5, map_key = 1, map_value = 2;
// Field numbers of google.protobuf.Value.
constexpr std::uint32_t value_number = 2, value_text = 3, value_boolean = 4;

// A DataType.
std::int64_t type_of(Kind kind) { return kind == Kind::text ? 1 : kind == Kind::boolean ? 2 : 3; }

Message value_of(const HyperParameter& value) {
  if (value.kind() == Kind::text) return Message().text(value_text, value.text());
  if (value.kind() == Kind::boolean) return Message().integer(value_boolean, value.number() != 0);
  return Message().f64(value_number, value.number());
}

}  // namespace

std::string experiment_of(std::span<const NamedHyperParameter> parameters, std::span<const NamedScalar> metrics,
                          double wall_time) {
  Message experiment;
  experiment.f64(experiment_time, wall_time);
  for (const NamedHyperParameter& parameter : parameters)
    experiment.message(
        experiment_parameters,
        Message().text(parameter_name, parameter.name).integer(parameter_type, type_of(parameter.value.kind())));
  for (const NamedScalar& metric : metrics)
    experiment.message(experiment_metrics, Message().message(metric_name, Message().text(metric_tag, metric.name)));
  return Message().message(data_experiment, experiment).bytes();
}

std::string session_of(std::span<const NamedHyperParameter> parameters, double wall_time) {
  Message session;
  for (const NamedHyperParameter& parameter : parameters)
    session.message(session_parameters,
                    Message().text(map_key, parameter.name).message(map_value, value_of(parameter.value)));
  session.f64(session_start_time, wall_time);
  return Message().message(data_session, session).bytes();
}

}  // namespace reel::logging
