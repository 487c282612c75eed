#include "phase_fibres.h"

#include <sanitizer/tsan_interface.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <exception>
#include <memory>
#include <utility>

#include <reel/detail/immovable.h>

// Compiled without the thread sanitizer, which would otherwise report the hand-over from one fibre to another.

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr unsigned no_order = 1;  // of __tsan_switch_to_fiber: nothing precedes

class Fibre : Immovable {
 public:
  Fibre()
      : inner_([this](boost::context::fiber&& outer) {
          while (task_.run) {
            try {
              task_.run(task_.f, task_.ends, task_.first, task_.second);
            } catch (...) {
              thrown_ = std::current_exception();
            }
            __tsan_switch_to_fiber(before_, no_order);
            outer = std::move(outer).resume();
          }
          return std::move(outer);
        }) {}
  ~Fibre() {
    task_.run = nullptr;
    if (inner_) inner_ = std::move(inner_).resume();
    __tsan_destroy_fiber(history_);
  }

  void run(const FibreTask& task) {
    task_ = task;
    before_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(history_, no_order);
    inner_ = std::move(inner_).resume();
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  void* history_ = __tsan_create_fiber(0);
  void* before_ = nullptr;
  FibreTask task_{};
  std::exception_ptr thrown_;
  boost::context::fiber inner_;
};

using Fibres = std::array<Fibre, fibre_count + 1>;
thread_local std::unique_ptr<std::array<Fibres, 2>> fibres;

}  // namespace

void make_fibres() {
  if (!fibres) fibres = std::make_unique<std::array<Fibres, 2>>();
}

void run_on_fibre(std::int64_t group, std::size_t number, const FibreTask& task) {
  (*fibres)[static_cast<std::size_t>(group % 2)][number].run(task);
}

}  // namespace reel::detail::inline REEL_TARGET
