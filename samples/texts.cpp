#include "texts.h"

#include <algorithm>
#include <numbers>
#include <set>
#include <sstream>
#include <stdexcept>

#include "made_up.h"

namespace samples {

using namespace reel;

void add_text_options(CommandLine& line, TextOptions& options, const char* steps) {
  line.add_option("--text", options.text, "text to learn, in UTF-8; without it, sentences of a small grammar");
  add_common_options(line, options, "segments", "another text, whose loss is measured at the end");
  line.add_option("--steps", options.steps, steps, at_least(1));
  line.add_option("--dropout", options.dropout, "probability with which a number becomes 0 in training",
                  between(0.0, 0.99));
  line.add_option("--clip", options.clip, "largest norm of the gradient", at_least(0));
  line.add_option("--warm-up", options.warm_up, "steps in which the learning rate rises", at_least(1));
  line.add_flag("--bf16", options.bf16, "compute products of the training in bf16");
  line.add_option("--sample", options.sample, "characters to make up at the end", at_least(0));
  line.add_option("--temperature", options.temperature, "of the sampled text; lower is more cautious", at_least(0.01));
}

Characters::Characters(std::string_view text) {
  std::set<unsigned char> occurring(text.begin(), text.end());
  bytes_.assign(occurring.begin(), occurring.end());
}

Characters Characters::from_words(const std::string& words) {
  Characters characters;
  std::istringstream in(words);
  for (int byte = 0; in >> byte;) characters.bytes_.push_back(byte);
  return characters;
}

std::string Characters::words() const { return fmt::format("{}", fmt::join(bytes_, " ")); }

Tensor Characters::ids(std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (unsigned char byte : text) {
    auto found = std::ranges::lower_bound(bytes_, byte);
    if (found == bytes_.end() || *found != byte)
      throw std::runtime_error(fmt::format("the model does not know the byte {} of the text.", byte));
    ids.push_back(found - bytes_.begin());
  }
  return tensor(ids);
}

namespace {

std::string read_some(const std::string& path) {
  std::string text = io::read_text(path);
  if (text.empty()) throw std::runtime_error(fmt::format("the text '{}' is empty.", io::printable(path)));
  return text;
}

}  // namespace

Texts read_texts(const TextOptions& options, io::Contents& file, std::int64_t smallest) {
  std::string text = options.text.empty() ? made_up_text(options.seed) : read_some(options.text);
  std::string test = options.test.empty() ? "" : read_some(options.test);
  auto learnt = static_cast<std::int64_t>(text.size() - text.size() / 10);
  if (learnt < smallest || text.size() < 20 || test.size() == 1)
    throw std::runtime_error(fmt::format(
        "the text is too short: {} characters to learn from, where {} segments of {} need {}; lower --batch "
        "or --steps, or take a longer text.",
        learnt, options.batch, options.steps, smallest));
  Characters characters = options.load.empty() ? Characters(text) : Characters::from_words(file.metadata["characters"]);
  Tensor ids = characters.ids(text);
  return {characters, slice(ids, 0, 0, learnt), slice(ids, 0, learnt, ids.size(0)),
          test.empty() ? Tensor() : characters.ids(test)};
}

optim::Schedule warm_cosine(const TextOptions& options, std::int64_t steps) {
  std::int64_t rest = std::max<std::int64_t>(steps - options.warm_up, 1);
  return optim::sequence(
      {{optim::warm_up({.steps = options.warm_up, .start = 0.01}), options.warm_up}, {optim::cosine({.steps = rest})}});
}

std::int64_t draw(const Tensor& logits, double temperature) {
  return distributions::Categorical(logits / temperature).sample().item<std::int64_t>();
}

void print_losses(const Texts& texts, double held_back, double test) {
  auto row = [](const char* name, const Tensor& text, double loss) {
    return std::vector<std::string>{name, std::to_string(text.size(0)), fmt::format("{:.4f}", loss),
                                    fmt::format("{:.4f}", loss / std::numbers::ln2)};
  };
  std::vector<std::vector<std::string>> rows{{"", "characters", "nats a character", "bits"}};
  if (texts.test.defined()) rows.push_back(row("test", texts.test, test));
  rows.push_back(row("held back", texts.held_back, held_back));
  print_results(rows);
  fmt::print("validation loss {:.4f} nats/char\n", held_back);
}

}  // namespace samples
