#include <reel/nn/dropout.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char *dropout_name = "Dropout", *channel_name = "Dropout2d", *alpha_name = "AlphaDropout",
                     *variational_name = "VariationalDropout";

double checked_probability(const char* name, double probability, Location where) {
  if (!(probability >= 0 && probability <= 1))
    fail<Error>(name, where, "a probability lies between 0 and 1, not {}", probability);
  return probability;
}

}  // namespace

Dropout::Dropout(double probability, Generator* generator, Location where)
    : options_{.probability = checked_probability(dropout_name, probability, where), .generator = generator} {}

Tensor Dropout::operator()(const Arg& x) const {
  return call(dropout_name, x, [&](const Tensor& x) { return is_training() ? dropout(x, options_) : copy(x); });
}

Dropout2d::Dropout2d(double probability, Generator* generator, Location where)
    : options_{.probability = checked_probability(channel_name, probability, where), .generator = generator} {}

Tensor Dropout2d::operator()(const Arg& x) const {
  return call(channel_name, x, [&](const Tensor& x) { return is_training() ? dropout2d(x, options_) : copy(x); });
}

AlphaDropout::AlphaDropout(double probability, Generator* generator, Location where)
    : options_{.probability = checked_probability(alpha_name, probability, where), .generator = generator} {}

Tensor AlphaDropout::operator()(const Arg& x) const {
  return call(alpha_name, x, [&](const Tensor& x) { return is_training() ? alpha_dropout(x, options_) : copy(x); });
}

VariationalDropout::VariationalDropout(VariationalDropoutOptions options, Location where) : options_(options) {
  checked_probability(variational_name, options.probability, where);
}

Tensor VariationalDropout::operator()(const Arg& x) const {
  return call(variational_name, x,
              [&](const Tensor& x) { return is_training() ? variational_dropout(x, options_) : copy(x); });
}

}  // namespace reel::nn
