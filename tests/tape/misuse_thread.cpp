#include "catch.h"
#include "fork.h"
#include "misuse.h"

// Other threads, and other processes.

namespace reel_test {

using namespace reel;

namespace {

// Calls f in a forked process, and rethrows its exception here.
void in_forked(const std::function<void()>& f) {
  std::string text = in_child([&] { return error_of<TapeError>(f); });
  std::size_t place = text.rfind("; at ");
  static std::string file;
  file = text.substr(place + 5, text.rfind(':') - place - 5);
  throw TapeError(text.substr(0, place), {file.c_str(), std::stoi(text.substr(text.rfind(':') + 1))});
}

}  // namespace

MisuseGroup thread_misuse() {
  return {
      "Threads and processes",
      {
          {"h * 2;  // h was computed on a tape of another thread",
           "TapeError: mul: operand (3,) f32, computed at …, belongs to the tape of another thread; hand it over with "
           "stop_gradient there, and watch it here",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             Tensor h = w * 2;
             on_thread([&] {
               Tape other;
               h * 2;
             });
           }},
          {"tape.watch(h);  // h was computed on a tape of another thread",
           "TapeError: watch: operand (3,) f32, computed at …, belongs to the tape of another thread; hand it over "
           "with stop_gradient there, and watch it here",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             Tensor h = w * 2;
             on_thread([&] {
               Tape other;
               other.watch(h);
             });
           }},
          {"tape.backward(h);  // another thread computed h, without a tape",
           "TapeError: backward: the target () f32, computed at …, was computed by another thread, whose ops a tape of "
           "this one does not see; compute it here, or open the tape there",
           [] {
             Tensor w = ones({}).requires_grad(), h;
             Tape tape;
             on_thread([&] { h = w * 2; });
             tape.backward(h);
           }},
          {"tape.backward(h);  // h was computed on a tape of another thread",
           "TapeError: backward: the target () f32, computed at …, belongs to the tape of another thread; "
           "differentiate it there",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             Tensor h = w * 2;
             on_thread([&] {
               Tape other;
               other.backward(h);
             });
           }},
          {"tape.backward(loss);  // the tape was opened by another thread",
           "TapeError: backward: this tape was opened by another thread; open one in this thread",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             Tensor loss = w * w;
             on_thread([&] { tape.backward(loss); });
           }},
          {"add_(x, w);  // another thread made x, and this one's tape follows w",
           "TapeError: add_: (3,) f32, made at … by another thread, cannot hold values that this thread's tape tracks; "
           "overwrite a copy",
           [] {
             Tensor x = ones({3});
             on_thread([&] {
               Tensor w = ones({3}).requires_grad();
               Tape tape;
               add_(x, w);
             });
           }},
          {"if (fork() == 0) w * 2;  // while a tape is open",
           "TapeError: mul: the tape that is open was opened before fork(), by process …, and operand (3,) f32 would "
           "be recorded; open a tape in this process, or compute under NoRecord",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             in_forked([&] { w * 2; });
           }},
          {"if (fork() == 0) tape.backward(loss);",
           "TapeError: backward: this tape was opened before fork(), by process …; open one in this process",
           [] {
             Tensor w = ones({}).requires_grad();
             Tape tape;
             Tensor loss = w * w;
             in_forked([&] { tape.backward(loss); });
           }},
          {"if (fork() == 0) { Tape own; h * 2; }  // h was computed before",
           "TapeError: mul: operand (3,) f32, computed at …, belongs to a tape that was opened before fork(), by "
           "process …; use stop_gradient to carry its value on, or compute it again on a tape of this process",
           [] {
             Tensor w = ones({3}).requires_grad();
             Tape tape;
             Tensor h = w * 2;
             in_forked([&] {
               Tape own;
               h * 2;
             });
           }},
      },
  };
}

}  // namespace reel_test
