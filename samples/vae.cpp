// Learns to make pictures of digits with a variational auto-encoder.
//
// Its encoder gives a normal distribution over codes z, its decoder the probability of each pixel. The bound on the logarithm
// of a picture's probability, ELBO, is maximised by gradients through samples of z. Pixels are black or white: they are drawn
// with their brightness as the probability, anew in each epoch, and once for the pictures that are held back, the last fifth.
// The weights are those of the last epoch; --log gets a picture of samples.
//
// Paper: Kingma and Welling, Auto-encoding variational Bayes (ICLR 2014).
// Data: MNIST's test images in the format IDX, t10k-images-idx3-ubyte.gz; without --images made-up digits of seven segments.
// Command: tools/run vae --images mnist/t10k-images-idx3-ubyte.gz
// Result: after 40 epochs, 22 processor seconds, -ELBO is 111.49 nats a picture on the 2,000 held back (seed 1), where the
//         frequencies of the pixels alone have 215.28; two cores with AVX-512.

#include <array>
#include <cmath>
#include <ranges>

#include "made_up.h"
#include "training.h"

using namespace reel;
using distributions::Bernoulli;
using distributions::Normal;

/// A pair of nets: q(z | x), normal, and p(x | z), independent pixels; p(z) is the standard normal distribution.
struct VAE : nn::Module {
  nn::Linear encoder, mean, log_deviation, decoder, pixels;

  VAE(std::int64_t size, std::int64_t hidden, std::int64_t codes)
      : encoder(*this, "encoder", size, hidden),
        mean(*this, "mean", hidden, codes),
        log_deviation(*this, "log_deviation", hidden, codes),
        decoder(*this, "decoder", codes, hidden),
        pixels(*this, "pixels", hidden, size) {}

  Normal encode(const Tensor& x) const {  // (N, size)
    Tensor h = relu(encoder(x));
    return {mean(h), exp(log_deviation(h))};
  }
  Bernoulli decode(const Tensor& z) const {  // (N, codes)
    return Bernoulli({.logits = pixels(relu(decoder(z)))});
  }
  /// The two terms of −ELBO, (N) each: −log p(x | z) of a sample z of q, and the divergence of q from p(z).
  std::array<Tensor, 2> losses(const Tensor& x, Generator& noise) const {
    Normal q = encode(x);
    Tensor z = q.rsample({}, {.generator = &noise});
    return {-sum(decode(z).log_prob(x), 1), sum(kl_divergence(q, Normal(0, 1)), 1)};
  }
};

struct Options : samples::RunOptions {
  std::string images;
  std::int64_t hidden = 400, codes = 20;
  int count = 1000;
};

constexpr std::int64_t side = 28, size = side * side;

/// The brightness of pictures, (N, 784), in [0, 1].
Tensor brightness_of(const Tensor& images) { return to(reshape(to(images, f32) / 255, {-1, size}), default_device()); }
Tensor read_images(const std::string& path) {
  Tensor images = data::read_idx(path);
  if (images.rank() != 3 || images.size(1) != side || images.size(2) != side || images.size(0) < 5)
    throw std::runtime_error(fmt::format("'{}' holds {}, not at least five pictures of 28 × 28 pixels.",
                                         io::printable(path), to_string(images.shape())));
  return brightness_of(images);
}

struct Bound {
  double reconstruction = 0, divergence = 0;
  double total() const { return reconstruction + divergence; }
};

/// The means of the two terms of −ELBO, in nats, with one sample of z a picture.
Bound evaluate(const VAE& model, const Tensor& brightness) {
  Generator generator(12345);  // equal pixels and noise for all runs
  Tensor x = bernoulli(brightness, {.generator = &generator});
  Bound bound;
  for (const Tensor& part : split(x, std::min<std::int64_t>(x.size(0), 500))) {
    auto [reconstruction, divergence] = model.losses(part, generator);
    bound.reconstruction += sum(reconstruction).item() / static_cast<double>(x.size(0));
    bound.divergence += sum(divergence).item() / static_cast<double>(x.size(0));
  }
  return bound;
}

/// Eight rows of pictures that the model makes up, each pixel's probability as its brightness.
void draw_samples(const VAE& model, const Options& options) {
  if (options.log.empty()) return;
  Generator generator(options.seed);
  Tensor z = randn({64, options.codes}, {.generator = &generator});
  logging::Writer log(options.log);
  log.image("samples", reshape(model.decode(z).mean(), {64, 1, side, side}), options.epochs);
}

void run(Options options) {
  manual_seed(options.seed);
  io::Contents file = samples::load(options, "vae");
  if (!options.load.empty()) {
    options.hidden = std::stoll(file.metadata["hidden"]);
    options.codes = std::stoll(file.metadata["codes"]);
  }
  auto make_up = [&] { return brightness_of(samples::made_up_digits(options.seed, options.count).images); };
  Tensor test, images = options.images.empty() ? make_up() : read_images(options.images);
  if (!options.test.empty()) test = read_images(options.test);
  std::int64_t learnt = images.size(0) * 4 / 5;
  Tensor train = slice(images, 0, 0, learnt), dev = slice(images, 0, learnt, images.size(0));
  VAE model(size, options.hidden, options.codes);
  if (!options.load.empty()) io::load_into(model, file);

  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  std::int64_t steps = options.epochs * ((learnt + options.batch - 1) / options.batch);
  optim::Scheduler scheduler(adam, optim::cosine({.steps = std::max<std::int64_t>(steps, 1)}));
  Generator noise(options.seed);
  auto draw = [&](std::int64_t i, Generator& generator) {
    return bernoulli(select(train, 0, i), {.generator = &generator});
  };
  data::Loader loader(data::transformed(std::views::iota(std::int64_t{0}, learnt), draw),
                      [](const std::vector<Tensor>& pictures) { return stack(pictures); },
                      {.batch_size = options.batch, .shuffle = true, .seed = options.seed});
  auto step = [&](const Tensor& x) {
    Tape tape;
    auto [reconstruction, divergence] = model.losses(x, noise);
    Tensor loss = mean(reconstruction + divergence);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    adam.step();
    adam.zero_grad();
    scheduler.step();
    return value;
  };
  samples::Run run{
      options,
      model,
      adam,
      "pictures",
      fmt::format("{} pictures, {} parameters", learnt, model.parameter_count()),
      {{"sample", "vae"}, {"hidden", fmt::to_string(options.hidden)}, {"codes", fmt::to_string(options.codes)}}};
  run.also = {{"scheduler", scheduler}, {"noise", noise}};
  samples::train(run, loader, step, [&] {
    double bound = evaluate(model, dev).total();
    return samples::Reached{-bound, fmt::format("-ELBO {:.2f} nats", bound)};
  });

  draw_samples(model, options);
  std::vector<std::vector<std::string>> rows{{"", "pictures", "-log p(x|z)", "KL", "-ELBO in nats"}};
  auto add_row = [&](const std::string& name, const Tensor& pictures) {
    Bound bound = evaluate(model, pictures);
    rows.push_back({name, fmt::to_string(pictures.size(0)), fmt::format("{:.2f}", bound.reconstruction),
                    fmt::format("{:.2f}", bound.divergence), fmt::format("{:.2f}", bound.total())});
  };
  if (test.defined()) add_row("test", test);
  // The bound from the frequencies of the pixels alone, without a code.
  Tensor share = clamp(reel::mean(train, 0), 1e-3, 1 - 1e-3);
  double constant = -reel::mean(sum(Bernoulli({.probabilities = share}).log_prob(dev), 1)).item();
  rows.push_back({"frequencies", fmt::to_string(dev.size(0)), "", "", fmt::format("{:.2f}", constant)});
  add_row("held back", dev);
  samples::print_results(rows);
}

int main(int argc, char** argv) {
  Options options;
  options.epochs = 40;
  options.batch = 128;
  samples::CommandLine line("Learns to make pictures of digits, with a variational auto-encoder.", "vae");
  samples::add_common_options(line, options, "pictures",
                              "IDX file of pictures of 28 × 28 pixels, to evaluate the result on");
  line.add_option("--images", options.images,
                  "IDX file of pictures of 28 × 28 pixels, plain or compressed with gzip; without it, made-up ones");
  line.add_option("--count", options.count, "pictures that are made up", samples::at_least(5));
  line.add_option("--hidden", options.hidden, "units of the hidden layers", samples::at_least(1));
  line.add_option("--codes", options.codes, "numbers of a code z", samples::at_least(1));
  return line.run(argc, argv, [&] { run(options); });
}
