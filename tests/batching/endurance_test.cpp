#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <ranges>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"

// Many examples, deep recursion and many steps, at small sizes. REEL_ENDURANCE=1 runs the large ones: 100,000 examples,
// recursion 10,000 deep and 10,000 steps.

using namespace reel;
using namespace reel_test;

namespace {

const bool endures = std::getenv("REEL_ENDURANCE") != nullptr;

// Sanitizers handle signals, and keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

int sized(int small, int large) {
  if (endures) return large;
  return sanitized ? small / 10 : small;  // a fibre takes the thread sanitizer a millisecond
}

// Bytes of memory that this process has in use.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Recursion without ops on the way down.
// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] Tensor descend(const Tensor& x, int depth) {
  if (depth == 0) return x;
  volatile int level = depth;
  return descend(x, depth - 1) * level;
}

struct Cell {
  Tensor W = (draw({4, 4}) * 0.4).requires_grad(), U = (draw({4, 4}) * 0.4).requires_grad();

  Tensor leaf(int i) const { return tanh(matmul(full({1, 4}, 0.1 * (i % 7) - 0.3, {.dtype = f64}), W)); }
  Tensor node(const Tensor& left, const Tensor& right) const { return tanh(matmul(left, W) + matmul(right, U)); }
  // A tree whose right children are leaves.
  Tensor plain(int depth) const { return depth == 0 ? leaf(0) : node(plain(depth - 1), leaf(depth)); }
  Tensor siblings(int depth) const {
    if (depth == 0) return leaf(0);
    auto [left, right] = both([&] { return siblings(depth - 1); }, [&] { return leaf(depth); });
    return node(left, right);
  }
  // The tree's second children are the deep ones, so that every level has a fibre of its own.
  Tensor reversed(int depth) const {
    if (depth == 0) return leaf(0);
    auto [right, left] = both([&] { return leaf(depth); }, [&] { return reversed(depth - 1); });
    return node(left, right);
  }
  Tensor loop(int depth) const {
    Tensor state = leaf(0);
    for (int i = 1; i <= depth; ++i) state = node(state, leaf(i));
    return state;
  }
  std::vector<Tensor> parameters() const { return {W, U}; }
};

}  // namespace

TEST_CASE("very many examples of one batch_map have the sums and gradients of those that repeat") {
  manual_seed(1);
  Cell cell;
  int count = sized(5'000, 100'000);
  auto chain = [&](int i) {
    Tensor x = cell.leaf(i);
    for (int step = 0; step < i % 7; ++step) x = cell.node(x, x);
    return sum(x);
  };
  Tape tape;
  std::vector<Tensor> made = batch_map(std::views::iota(0, count), chain);
  std::vector<Tensor> found = tape.gradient(sum(stack(made)), cell.parameters());
  Tape again;
  Tensor total = zeros({}, {.dtype = f64});
  for (int i = 0; i < 7; ++i) total = total + chain(i) * (count / 7 + (i < count % 7));
  check_close(found, again.gradient(total, cell.parameters()), 1e-9);
}

TEST_CASE("recursion and siblings nested very deep have the values and gradients of a loop") {
  manual_seed(2);
  Cell cell;
  int depth = sized(300, 10'000);
  auto gradients = [&](auto encode, const BatchOptions& options) {
    Tape tape;
    Tensor y = stack(batch_map(
        numbers(3), [&](int i) { return encode(depth - i); }, options));
    std::vector<Tensor> made = tape.gradient(sum(square(y)), cell.parameters());
    made.push_back(y);
    return made;
  };
  std::vector<Tensor> expected = gradients([&](int depth) { return cell.loop(depth); }, {.immediate = true});
  BatchOptions large{.stack_bytes = std::size_t{256} << 20};
  check_close(gradients([&](int depth) { return cell.plain(depth); }, large), expected, 1e-9);
  check_close(gradients([&](int depth) { return cell.siblings(depth); }, large), expected, 1e-9);
  check_close(gradients([&](int depth) { return cell.reversed(depth); }, large), expected, 1e-9);
}

TEST_CASE("siblings nested deeper than their stack are told to take a larger one") {
  manual_seed(3);
  Cell cell;
  for (bool reversed : {false, true}) {
    CAPTURE(reversed);
    std::string text = error_of<Error>([&] {
      batch_map(numbers(3), [&](int) { return reversed ? cell.reversed(10'000) : cell.siblings(10'000); },
                {.stack_bytes = 128 << 10});
    });
    CHECK_THAT(text,
               contains("the example's recursion fills its stack of 128 KB; give batch_map a larger stack_bytes"));
    CHECK_THAT(text, contains("in example "));
  }
}

TEST_CASE("a stack that overflows between ops ends the process with a sentence") {
  if (sanitized) return;
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rlimit no_dump{};
    setrlimit(RLIMIT_CORE, &no_dump);
    std::signal(SIGSEGV, SIG_DFL);  // the test program has a handler
    dup2(ends[1], STDERR_FILENO);
    Tensor x = full({1, 4}, 0.5);
    batch_map(numbers(3), [&](int) { return descend(x, 100'000); }, {.stack_bytes = 192 << 10});
    _exit(0);
  }
  close(ends[1]);
  std::string text(1000, ' ');
  ssize_t size = read(ends[0], text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  // An emulator adds a line of its own.
  CHECK(text.starts_with(
      "batch_map: an example's recursion has overflowed its stack; give batch_map a larger stack_bytes.\n"));
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("many training steps take no more memory than a few") {
  manual_seed(4);
  Cell cell;
  std::vector<Tensor> parameters = cell.parameters();
  auto step = [&](int index) {
    Tape tape;
    std::vector<Tensor> made = batch_map(numbers(8), [&](int i) { return cell.siblings(1 + (i * 5 + index) % 6); });
    tape.backward(sum(square(concat(made))));
    for (Tensor& parameter : parameters) parameter.set_grad({});
  };
  int before = sized(200, 1'000), after = sized(1'000, 10'000), done = 0;
  for (; done < before; ++done) step(done);
  std::size_t resident = resident_bytes();
  MemoryStatistics statistics = memory_statistics();
  for (; done < after; ++done) step(done);
  if (!sanitized) CHECK(resident_bytes() <= resident + (std::size_t{256} << 10));
  UNSCOPED_INFO("resident after " << before << " steps: " << resident << ", after " << after << ": "
                                  << resident_bytes());
  CHECK(memory_statistics().live_tensors == statistics.live_tensors);
  CHECK(memory_statistics().live_bytes == statistics.live_bytes);
  CHECK(memory_statistics().peak_bytes == statistics.peak_bytes);
}
