#pragma once

#include <reel/distributions/bernoulli.h>
#include <reel/distributions/beta.h>
#include <reel/distributions/gamma.h>
#include <reel/distributions/gumbel.h>
#include <reel/distributions/normal.h>
#include <reel/distributions/poisson.h>
#include <reel/distributions/uniform.h>

/// \file
/// Kullback–Leibler divergences between distributions of two families. H is the entropy in nats. Divergences between two
/// distributions of one family are declared beside it.

namespace reel::distributions {

/// The Kullback–Leibler divergence from q to p in nats, −H(p) − m log λ + λ with the mean m of p: the batch shapes
/// broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Bernoulli& p, const Poisson& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) − (α − 1) E[log x] + β E[x] − α log β + log Γ(α),
/// expectations over p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Beta& p, const Gamma& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log σ + log(2π) / 2 + (v + (m − μ)²) / (2σ²) with the
/// mean m and variance v of p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Beta& p, const Normal& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log(high − low), and ∞ unless q's interval contains
/// [0, 1]: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Beta& p, const Uniform& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log s + (m − μ) / s + e^(μ / s) (1 + 1 / (β s))^−α
/// with q's scale s and the mean m of p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Gamma& p, const Gumbel& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log σ + log(2π) / 2 + (v + (m − μ)²) / (2σ²) with the
/// mean m and variance v of p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Gamma& p, const Normal& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log σ + log(2π) / 2 + (v + (m − μ)²) / (2σ²) with the
/// mean m and variance v of p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Gumbel& p, const Normal& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log s + d + e^(−d + (σ / s)² / 2) with q's scale s and
/// d = (μ_p − μ_q) / s: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Normal& p, const Gumbel& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log s + (m − μ) / s + s (e^((μ − low) / s) − e^((μ −
/// high) / s)) / (high − low) with q's scale s: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Uniform& p, const Gumbel& q, Location where = Location::here());

/// The Kullback–Leibler divergence from q to p in nats, −H(p) + log σ + log(2π) / 2 + (v + (m − μ)²) / (2σ²) with the
/// mean m and variance v of p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Uniform& p, const Normal& q, Location where = Location::here());

}  // namespace reel::distributions
