// unlike_ranks WAY: a program of several ranks, whose last one does otherwise than the others.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <unistd.h>

#include <reel/dist.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

using namespace reel;

namespace {

using Ways = std::map<std::string, std::function<int(const dist::Group&)>>;

bool is_last(const dist::Group& group) { return group.rank() == group.size() - 1; }

int train(const dist::Group& group, int steps) {
  nn::Linear net(3, 1);
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  dist::DataParallel parallel(group, net, sgd);
  for (int step = 0; step < steps; ++step) {
    Tape tape;
    parallel.backward(tape, sum(net(ones({2, 3}))), 2);  // of a rank that trains
    sgd.step();
    sgd.zero_grad();
  }
  return 0;
}

int reduce(const dist::Group& group, const Shape& shape, DType dtype = f32) {
  Tensor x = ones(shape, {.dtype = dtype});
  group.all_reduce(x);  // of a rank that reduces
  std::fprintf(stderr, "%g\n", to(x, f64).to_vector<double>()[0]);
  return 0;
}

int reduce_buffers(const dist::Group& group, std::int64_t elements) {
  Tensor buffer = group.reduction_buffer(elements);
  group.start_all_reduce(buffer).wait();
  return 0;
}

Ways ways_of_last() {
  return {
      {"exit", [](auto&) -> int { std::exit(0); }},
      {"return", [](auto&) { return 0; }},
      {"buffered", [](auto&) { return 0; }},
      {"_exit", [](auto&) -> int { ::_exit(0); }},
      {"SIGKILL", [](auto&) { return std::raise(SIGKILL); }},
      {"caught", [](auto&) { return 0; }},
      {"begun",
       [](const dist::Group& group) {
         static Tensor x = ones({3});  // MPI may write there until the end
         group.start_all_reduce(x);
         return 0;
       }},
      {"step", [](const dist::Group& group) { return train(group, 2); }},
      {"shape", [](const dist::Group& group) { return reduce(group, {5}); }},
      {"dtype", [](const dist::Group& group) { return reduce(group, {3}, i32); }},
      {"buffer", [](const dist::Group& group) { return reduce_buffers(group, 6); }},
      {"broadcast",
       [](const dist::Group& group) {
         Tensor x = ones({3});
         group.broadcast(x);
         return 0;
       }},
      {"slow",
       [](const dist::Group& group) {
         std::this_thread::sleep_for(std::chrono::seconds(4));
         return reduce(group, {3});
       }},
  };
}

Ways ways_of_others() {
  return {
      {"step", [](const dist::Group& group) { return train(group, 3); }},
      {"buffer", [](const dist::Group& group) { return reduce_buffers(group, 4); }},
      {"buffered",
       [](const dist::Group& group) {
         static char buffer[1 << 16];
         std::setvbuf(stderr, buffer, _IOFBF, sizeof buffer);
         return reduce(group, {3});
       }},
      {"caught",
       [](const dist::Group& group) {
         try {
           reduce(group, {3});
         } catch (const Error& error) {
           std::fprintf(stderr, "caught: %s\n", error.what());
         }
         return 0;
       }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return dist::run([&] {
    dist::Group group;
    reduce(group, {3});
    if (is_last(group)) return ways_of_last().at(argv[1])(group);
    Ways others = ways_of_others();
    return others.contains(argv[1]) ? others[argv[1]](group) : reduce(group, {3});
  });
}
