#include <reel/distributions/multivariate_normal.h>

#include <reel/no_record.h>
#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../ops/if_needed.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* multivariate_name = "MultivariateNormal";

// The diagonals of matrices (…, N, N): (…, N).
Tensor diagonal_of(const Tensor& matrix) {
  std::int64_t n = matrix.size(-1);
  Shape rows = without_last(matrix.shape(), 2);
  rows.push_back(n * n, Location::here());
  return slice(reshape(matrix, rows), -1, 0, n * n, n + 1);
}

Tensor log_diagonal(const Tensor& scale_tril) { return sum(log(diagonal_of(scale_tril)), -1); }

Tensor identity_like(const Tensor& matrix) {
  return eye(matrix.size(-1), {.dtype = matrix.dtype(), .device = matrix.device()});
}

// L with L Lᵀ = P⁻¹: with the order of rows and columns reversed, P = U Uᵀ, U = L⁻ᵀ, becomes a Cholesky decomposition.
Tensor scale_of_precision(const Tensor& precision) {
  Tensor factor = flip(cholesky(flip(precision, Shape{-2, -1})), Shape{-2, -1});
  return triangular_solve(transpose(factor), identity_like(precision));
}

// |L⁻¹ d|² of vectors (…, N).
Tensor squared_distance(const Tensor& scale_tril, const Tensor& difference) {
  Tensor solved;
  if (scale_tril.rank() == 2)  // all vectors are columns of one matrix
    solved = transpose(triangular_solve(scale_tril, transpose(reshape(difference, {-1, difference.size(-1)}))));
  else
    solved = squeeze(triangular_solve(scale_tril, unsqueeze(difference, -1)), -1);
  Tensor squared = sum(square(solved), -1);
  return scale_tril.rank() == 2 ? reshape(squared, without_last(difference.shape())) : squared;
}

void check_scale(const Tensor& scale_tril, Location where) {
  NoRecord pause;
  if (!value_to_check<bool>(all(diagonal_of(scale_tril) > 0)))
    fail<Error>(multivariate_name, where, "the diagonal of scale_tril must be above 0");
  if (value_to_check<bool>(any(triu(scale_tril, 1))))
    fail<Error>(multivariate_name, where, "scale_tril must be lower triangular, with zeros above its diagonal");
}

}  // namespace

MultivariateNormal::MultivariateNormal(const Arg& loc, const MultivariateNormalParameters& parameters) {
  const Tensor& mean = tensor_of(multivariate_name, loc);
  Location where = loc.location();
  OpScope caller(where, multivariate_name);
  const Tensor* given = nullptr;
  int count = 0;
  for (const Tensor* one : {&parameters.covariance_matrix, &parameters.precision_matrix, &parameters.scale_tril})
    if (one->defined()) {
      given = one;
      ++count;
    }
  if (count != 1)
    fail<Error>(multivariate_name, where,
                "one of covariance_matrix, precision_matrix and scale_tril must be given, not {}", count);
  if (mean.dtype() != given->dtype() || (mean.dtype() != DType::f32 && mean.dtype() != DType::f64))
    fail<DTypeError>(multivariate_name, where, "loc {} and the matrix {} must both be f32 or both f64", describe(mean),
                     describe(*given));
  check_same_device(multivariate_name, mean, *given, where);
  if (mean.rank() == 0 || mean.size(-1) == 0 || given->rank() < 2 || given->size(-1) != mean.size(-1) ||
      given->size(-2) != mean.size(-1))
    fail<ShapeError>(multivariate_name, where, "the matrix {} does not fit loc {}: they are (…, N, N) and (…, N)",
                     describe(*given), describe(mean));
  Shape batch = broadcast_of(multivariate_name, without_last(mean.shape()), without_last(given->shape(), 2), where);
  Tensor scale = *given;
  if (parameters.covariance_matrix.defined()) scale = cholesky(*given);
  if (parameters.precision_matrix.defined()) scale = scale_of_precision(*given);
  if (parameters.scale_tril.defined()) check_scale(scale, where);
  batch.push_back(mean.size(-1), where);
  loc_ = expand(mean, batch);
  batch.push_back(mean.size(-1), where);
  scale_tril_ = expand(scale, batch);
}

Tensor MultivariateNormal::covariance_matrix(Location where) const {
  OpScope caller(where, multivariate_name);
  return matmul(scale_tril_, transpose(scale_tril_));
}

Tensor MultivariateNormal::precision_matrix(Location where) const {
  OpScope caller(where, multivariate_name);
  Tensor inverse = triangular_solve(scale_tril_, expand(identity_like(scale_tril_), scale_tril_.shape()));
  return matmul(transpose(inverse), inverse);
}

Tensor MultivariateNormal::variance(Location where) const {
  OpScope caller(where, multivariate_name);
  return sum(square(scale_tril_), -1);
}

Shape MultivariateNormal::batch_shape() const { return without_last(loc_.shape()); }

Shape MultivariateNormal::event_shape() const { return {loc_.size(-1)}; }

Tensor MultivariateNormal::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  return stop_gradient(rsample(sample_shape, options, where));
}

Tensor MultivariateNormal::rsample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, multivariate_name);
  Tensor noise = randn(shape_of_samples(sample_shape, loc_.shape(), where),
                       {.dtype = loc_.dtype(), .device = loc_.device(), .generator = options.generator});
  if (scale_tril_.rank() == 2) return loc_ + matmul(noise, transpose(scale_tril_));
  return loc_ + squeeze(matmul(scale_tril_, unsqueeze(noise, -1)), -1);
}

Tensor MultivariateNormal::log_prob(const Arg& x) const {
  OpScope caller(x.location(), multivariate_name);
  const Tensor& given = tensor_of(multivariate_name, x);
  if (given.rank() == 0 || given.size(-1) != loc_.size(-1))
    fail<ShapeError>(multivariate_name, x.location(), "values {} are not vectors of {} elements along the last axis",
                     describe(given), loc_.size(-1));
  auto n = static_cast<double>(loc_.size(-1));
  return -0.5 * squared_distance(scale_tril_, given - loc_) - log_diagonal(scale_tril_) - n * half_log_2pi;
}

Tensor MultivariateNormal::entropy(Location where) const {
  OpScope caller(where, multivariate_name);
  return log_diagonal(scale_tril_) + static_cast<double>(loc_.size(-1)) * (0.5 + half_log_2pi);
}

Tensor kl_divergence(const MultivariateNormal& p, const MultivariateNormal& q, Location where) {
  OpScope caller(where, "kl_divergence");
  if (p.event_shape() != q.event_shape())
    fail<ShapeError>("kl_divergence", where, "vectors of {} elements and of {} have different sizes",
                     p.event_shape()[0], q.event_shape()[0]);
  Shape batch = broadcast_of("kl_divergence", p.batch_shape(), q.batch_shape(), where);
  std::int64_t n = p.event_shape()[0];
  batch.push_back(n, where);
  batch.push_back(n, where);
  Tensor spread = sum(square(triangular_solve(q.scale_tril(), expand(p.scale_tril(), batch))), Shape{-2, -1});
  return log_diagonal(q.scale_tril()) - log_diagonal(p.scale_tril()) +
         0.5 * (spread + squared_distance(q.scale_tril(), p.mean() - q.mean()) - static_cast<double>(n));
}

}  // namespace reel::distributions
