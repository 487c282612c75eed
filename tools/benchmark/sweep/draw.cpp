#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>

#include "sweep.h"

namespace reel_bench {

namespace {

using reel::Shape;
using Words = std::vector<std::string>;

Words words_of(const char* text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

bool is_prime(std::int64_t n) {
  for (std::int64_t i = 2; i * i <= n; ++i)
    if (n % i == 0) return false;
  return n > 1;
}

// Draws a case by the words of its specification.
class Draw {
 public:
  Draw(Case& made, Words words, reel::DType dtype, std::uint64_t seed)
      : made_(made), words_(std::move(words)), dtype_(dtype), random_(seed) {
    bool contiguous = chance(0.35);
    shared_ = contiguous || chance(0.3);
    if (!contiguous) layout_ = layout();
    draw_sizes();
    for (const std::string& word : words_)
      if (word == "axis") made_.attributes.axis = integer(0, static_cast<std::int64_t>(star_.size()) - 1);
    for (const std::string& word : words_)
      if (word[0] == '[') draw_operand(word);
    for (const std::string& word : words_) draw_attribute(word);
  }

 private:
  // How an operand's strides deviate from those of a contiguous tensor.
  struct Layout {
    bool permuted = false, sliced = false, stepped = false, expanded = false;
    std::uint64_t key = 0;
  };

  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return fraction() < probability; }
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(std::max(high, low) - low + 1));
  }
  std::int64_t size(std::int64_t low, std::int64_t high);
  Layout layout() { return {chance(0.5), chance(0.3), chance(0.25), chance(0.1), random_()}; }
  std::int64_t find_sizes();
  void draw_sizes();
  void draw_operand(const std::string& word);
  void draw_attribute(const std::string& word);
  Shape shape_of(std::string_view letters);
  void add(const Shape& shape, reel::DType dtype, const Layout& layout);

  Case& made_;
  Words words_;
  reel::DType dtype_;
  std::mt19937_64 random_;
  // Some cases are contiguous, some have one layout for all operands, the others one for each.
  bool shared_;
  Layout layout_ = {};
  std::map<char, std::int64_t> sizes_;
  std::vector<std::int64_t> star_;
};

// Small as often as large; often a prime, a power of two or a neighbour of one.
std::int64_t Draw::size(std::int64_t low, std::int64_t high) {
  if (high <= low) return low;
  auto drawn =
      static_cast<double>(low) * std::pow(static_cast<double>(high + 1) / static_cast<double>(low), fraction());
  auto n = static_cast<std::int64_t>(drawn);
  std::int64_t kind = integer(0, 3);
  if (kind == 0)
    while (n > low && !is_prime(n)) --n;
  if (kind == 1)
    n = (std::int64_t{1} << std::ilogb(static_cast<double>(n))) + (chance(0.2) ? 1 - 2 * integer(0, 1) : 0);
  return std::clamp(n, low, high);
}

// Finds the sizes that the operands have. Returns the most elements.
std::int64_t Draw::find_sizes() {
  std::int64_t elements = 1 << 21;
  int most_letters = -1;
  for (const std::string& word : words_) {
    if (word[0] == '^') elements = std::int64_t{1} << std::stoll(word.substr(1));
    if (word[0] != '[') continue;
    int letters = 0;
    for (std::size_t i = 1; word[i] != ']'; ++i) {
      letters += word[i] != '*' && word[i] != '@' && word[i - 1] != '@';
      if (std::islower(word[i])) sizes_[word[i]] = 1;
    }
    if (word.find('*') != std::string::npos) most_letters = std::max(most_letters, letters);
  }
  if (most_letters >= 0) star_.resize(static_cast<std::size_t>(integer(most_letters == 0, 4 - most_letters)));
  return elements;
}

// Divides the logarithm of a number of elements among all sizes, at times very unequally, at times with sizes of 1.
void Draw::draw_sizes() {
  std::int64_t elements = find_sizes();
  std::vector<std::int64_t*> all;
  for (auto& [letter, number] : sizes_) all.push_back(&number);
  for (std::int64_t& number : star_) all.push_back(&number);
  double left = std::log(static_cast<double>(size(std::max<std::int64_t>(elements >> 11, 1), elements)));
  bool thin = chance(0.25);
  std::vector<double> parts;
  for (std::size_t i = 0; i < all.size(); ++i)
    parts.push_back(all.size() > 1 && chance(0.06) ? 0 : std::pow(0.1 + fraction(), thin ? 4 : 1));
  double sum = std::accumulate(parts.begin(), parts.end(), 1e-9);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto most = static_cast<std::int64_t>(std::exp(left * parts[i] / sum) + 0.5);
    *all[i] = size(std::max<std::int64_t>(1, most * 3 / 4), std::max<std::int64_t>(1, most));
  }
  // Kernels, images that hold them, and batches that have a variance.
  for (auto& [letter, number] : sizes_) {
    if (letter == 'k') number = chance(0.3) ? 1 : integer(2, 5);
    if (letter == 'd' || letter == 'h' || letter == 'w') number = std::max<std::int64_t>(number, 5);
  }
}

Shape Draw::shape_of(std::string_view letters) {
  Shape shape;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    char letter = letters[i];
    if (letter != '*') {
      shape.push_back(std::isdigit(letter) ? letter - '0' : sizes_[letter]);
      continue;
    }
    for (std::int64_t each : star_) shape.push_back(each);
    if (i + 1 == letters.size() || letters[i + 1] != '@') continue;
    std::int64_t& along = shape[static_cast<int>(made_.attributes.axis)];
    char other = letters[i += 2];
    along = other == '1' ? along | 1 : other == '2' ? (along + 1) / 2 * 2 : sizes_[other];
  }
  return shape;
}

void Draw::draw_operand(const std::string& word) {
  std::size_t end = word.find(']');
  Shape shape = shape_of(word.substr(1, end - 1));
  auto has = [&](char flag) { return word.find(flag, end) != std::string::npos; };
  if (has('&')) {
    Shape whole = made_.operands[0].shape;
    bool ones = chance(0.2);
    shape = {};
    for (int i = chance(0.15) ? static_cast<int>(integer(0, whole.rank())) : 0; i < whole.rank(); ++i)
      shape.push_back(ones && chance(0.5) ? 1 : whole[i]);
  }
  Layout own = shared_ ? layout_ : layout();
  if (has('!')) own.expanded = false;
  add(shape, has('i') ? reel::i64 : has('b') ? reel::boolean : dtype_, own);
}

void Draw::draw_attribute(const std::string& word) {
  Attributes& with = made_.attributes;
  const Shape& first = made_.operands[0].shape;
  int rank = first.rank();
  std::int64_t along = with.axis == Attributes::unset ? 1 : first[static_cast<int>(with.axis)];
  if (word == "axes") {
    bool all = chance(0.15);
    for (int i = 0; i < rank; ++i)
      if (all || chance(0.45)) with.axes.push_back(i);
    if (with.axes.empty()) with.axes.push_back(integer(0, rank - 1));
  }
  if (word == "keepdims") with.keepdims = integer(0, 1);
  if (word == "reduction") with.reduction = integer(0, 2);
  if (word == "p") with.p = chance(0.6) ? 2 : integer(1, 3);
  if (word == "kernel") with.kernel = integer(2, 4);
  if (word == "stride") with.stride = chance(0.6) ? 1 : integer(2, 3);
  if (word == "padding") with.padding = integer(0, with.kernel == Attributes::unset ? sizes_['k'] / 2 : 1);
  if (word == "k<axis") with.k = chance(0.5) ? size(1, along) : integer(1, along);
  if (word == "padding:3") with.padding = integer(1, 3);
  if (word.starts_with("k:")) with.k = size(2, std::stoll(word.substr(2)));
  if (word.starts_with("below:")) with.below = size(2, std::stoll(word.substr(6)));
  if (word == "below") with.below = along;
  if (word == "below=*") with.below = first.numel();
  if (word == "below=c" || word == "below=r") with.below = sizes_[word.back()];
  if (word == "groups=c") with.groups = sizes_['c'];
  if (word == "groups")
    for (with.groups = integer(1, sizes_['c']); sizes_['c'] % with.groups != 0;) --with.groups;
}

void Draw::add(const Shape& shape, reel::DType dtype, const Layout& layout) {
  Operand made{dtype, shape, shape};
  std::vector<int> outwards(static_cast<std::size_t>(shape.rank()));
  std::iota(outwards.rbegin(), outwards.rend(), 0);
  std::mt19937_64 keyed(layout.key);
  if (layout.permuted) std::shuffle(outwards.begin(), outwards.end(), keyed);
  auto chosen = [&] { return outwards.empty() ? 0 : outwards[keyed() % outwards.size()]; };
  int sliced = chosen(), stepped = chosen(), expanded = chosen();
  std::int64_t running = 1, extra = static_cast<std::int64_t>(1 + keyed() % 9);
  for (int axis : outwards) {
    std::int64_t stride = layout.stepped && axis == stepped ? 2 * running : running;
    bool repeats = layout.expanded && axis == expanded;
    made.strides[axis] = repeats ? 0 : stride;
    if (!repeats) running = stride * shape[axis];
    if (layout.sliced && axis == sliced) {
      made.offset = stride * static_cast<std::int64_t>(keyed() % static_cast<std::uint64_t>(extra + 1));
      running += stride * extra;
    }
  }
  made_.operands.push_back(made);
}

reel::DType draw_dtype(std::string_view letters, bool halves, std::mt19937_64& random) {
  if (halves) return random() % 3 == 0 ? reel::f16 : reel::bf16;
  std::vector<reel::DType> dtypes;
  for (char letter : letters) {
    if (letter == 'i') dtypes.insert(dtypes.end(), 2, reel::i64);
    if (letter == 'b') dtypes.push_back(reel::boolean);
    if (std::tolower(letter) == 'f' || std::tolower(letter) == 'd')
      dtypes.insert(dtypes.end(), {reel::f32, reel::f32, reel::f32, reel::f32, reel::f64});
  }
  return dtypes[random() % dtypes.size()];
}

}  // namespace

const Op<reel::Tensor>& op_named(std::string_view name) {
  for (const OpFamily<reel::Tensor>& family : op_families())
    for (const Op<reel::Tensor>& op : family.ops)
      if (name == op.name) return op;
  throw std::invalid_argument(fmt::format("there is no op {}", name));
}

bool has_word(const Op<reel::Tensor>& op, std::string_view word) {
  Words words = words_of(op.specification);
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::pair<double, double> range_of(const Op<reel::Tensor>& op) {
  for (const std::string& word : words_of(op.specification))
    if (std::size_t dots = word.find(".."); dots != std::string::npos)
      return {std::stod(word), std::stod(word.substr(dots + 2))};
  return {-2, 2};
}

Case draw_case(std::uint64_t seed, std::string_view only, bool halves) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<const Op<reel::Tensor>*>> families;
  for (const OpFamily<reel::Tensor>& family : op_families()) {
    std::vector<const Op<reel::Tensor>*> ops;
    for (const Op<reel::Tensor>& op : family.ops) {
      bool suits = !halves || op.specification[0] == 'F' || op.specification[0] == 'f';
      if ((only.empty() || only == family.name || only == op.name) && suits) ops.push_back(&op);
    }
    if (!ops.empty()) families.push_back(std::move(ops));
  }
  if (families.empty()) throw std::invalid_argument(fmt::format("there is no op or family \"{}\"", only));
  const std::vector<const Op<reel::Tensor>*>& ops = families[random() % families.size()];
  const Op<reel::Tensor>& op = *ops[random() % ops.size()];
  Words words = words_of(op.specification);
  reel::DType dtype = draw_dtype(words[0], halves, random);
  Case one{op.name};
  one.gradient = is_floating(dtype) && std::isupper(words[0][0]) && random() % 5 < 2;
  Draw(one, words, dtype, random());
  return one;
}

}  // namespace reel_bench
