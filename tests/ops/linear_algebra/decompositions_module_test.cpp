#include <reel/reel.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// How the module of decompositions is loaded: its argument is the case.

namespace {

using namespace reel;

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("it does not hold that %s\n", what);
  ++failures;
}

std::size_t thread_number() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

bool is_loaded() {
  std::ifstream maps("/proc/self/maps");
  std::string text(std::istreambuf_iterator<char>(maps), {});
  return text.find("libreel_decompositions.so") != text.npos;
}

bool decomposes() {
  Tensor a = tensor({{3.0, 1.0}, {1.0, 3.0}});
  return max(abs(svd(a).s - tensor({4.0, 2.0}))).item() < 1e-14;
}

void starts_no_thread() {
  std::size_t before = thread_number();
  matmul(ones({2, 2}), ones({2, 2}));
  check(!is_loaded(), "a program that decomposes nothing does not load the module");
  check(decomposes(), "singular values are right");
  check(is_loaded(), "the first decomposition loads the module");
  check(thread_number() == before, "the module starts no thread");
}

void is_absent() {
  setenv("REEL_MODULES", "/no/such/folder", 1);
  std::string sentence;
  try {
    solve(eye(2), ones({2}));
  } catch (const Error& error) {
    sentence = error.what();
  }
  std::string_view wanted =
      "solve: decompositions and solutions of matrices need libreel_decompositions.so, which is not in "
      "/no/such/folder: install it with reel, or name its folder in the environment variable REEL_MODULES";
  std::printf("%s\n", sentence.c_str());
  check(sentence.starts_with(wanted), "the error says what is missing and what to do");
  check(sentence.find("decompositions_module_test.cpp:") != sentence.npos, "the error names the line");
  unsetenv("REEL_MODULES");
  check(decomposes(), "the next decomposition finds the module");
}

void loads_at_once() {
  constexpr int count = 4;
  std::atomic<int> waiting = count, right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      for (--waiting; waiting != 0;) std::this_thread::yield();
      right += decomposes();
    });
  for (std::thread& one : threads) one.join();
  check(right == count, "every thread gets the right singular values");
}

}  // namespace

int main(int count, char** arguments) {
  std::string_view wanted = count > 1 ? arguments[1] : "";
  if (wanted == "threads") starts_no_thread();
  if (wanted == "absent") is_absent();
  if (wanted == "at-once") loads_at_once();
  return failures == 0 ? 0 : 1;
}
