// Learns a code of two numbers for images of a spot, with a variational auto-encoder.

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;
using distributions::Bernoulli, distributions::Normal;

struct VAE : nn::Module {
  nn::Linear encoder, mean, log_deviation, decoder, pixels;

  explicit VAE(std::int64_t hidden = 64, std::int64_t codes = 2)
      : encoder(*this, "encoder", 144, hidden),
        mean(*this, "mean", hidden, codes),
        log_deviation(*this, "log_deviation", hidden, codes),
        decoder(*this, "decoder", codes, hidden),
        pixels(*this, "pixels", hidden, 144) {}

  Normal encode(const Tensor& x) const {
    Tensor h = relu(encoder(x));
    return {mean(h), exp(log_deviation(h))};
  }

  Bernoulli decode(const Tensor& z) const { return Bernoulli({.logits = pixels(relu(decoder(z)))}); }

  /// The negative evidence lower bound of each image in nats, (N).
  Tensor operator()(const Tensor& x) const {
    Normal q = encode(x);
    Tensor likelihood = decode(q.rsample()).log_prob(x);
    return sum(kl_divergence(q, Normal(0, 1)), 1) - sum(likelihood, 1);
  }
};

/// Images (count, 144) of a round spot anywhere, of black and white pixels.
Tensor draw(std::int64_t count) {
  Tensor centre = 2 + 8 * rand({2, count, 1, 1});
  Tensor column = arange(12.f);
  Tensor row = reshape(column, {-1, 1});
  Tensor distance = square(column - centre(0)) + square(row - centre(1));
  return flatten(bernoulli(exp(-distance / 8)), 1);
}

int main() {
  manual_seed(1);
  VAE model;
  optim::Adam adam(model.parameters(), {.learning_rate = 5e-3});
  for (int step = 0; step < 500; ++step) {
    Tape tape;
    Tensor loss = mean(model(draw(64)));
    adam.zero_grad();
    tape.backward(loss);
    adam.step();
    if (step % 100 == 0) fmt::print("step {}: -ELBO {:.2f} nats\n", step, loss.item());
  }
  Tensor images = draw(1000);
  double bound = mean(model(images)).item();
  Bernoulli pixels({.probabilities = clamp(mean(images, 0), 1e-3, 1 - 1e-3)});
  double baseline = -mean(sum(pixels.log_prob(images), 1)).item();
  fmt::print("-ELBO is {:.2f} nats, from the frequencies of pixels alone {:.2f}; 80 % of it are required\n", bound,
             baseline);
  return bound > 0.8 * baseline;
}
