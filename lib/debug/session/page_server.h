#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <reel/location.h>

#include "../../io/modules/serve_table.h"

namespace reel::debug {

/// A page's request: the part of the address behind the token, such as "data", and the body.
struct PageRequest {
  std::string what, body;
};

struct PageAnswer {
  int status = 200;
  const char* type = "application/json";
  std::string text = {};
};

/// Serves a page on 127.0.0.1, at an address with a random token that requests must have. They come on threads of the
/// server, and wait until the program's thread answers them, so that nothing of a session is shared between threads.
class PageServer : detail::Immovable {
 public:
  using Answer = std::function<PageAnswer(const PageRequest& request)>;

  /// Listens at a port, 0: any free one. Throws: FileError if libreel_serve.so is not there; Error if the port is taken.
  PageServer(int port, Location where);
  ~PageServer();

  /// "http://127.0.0.1:40123/2f…/".
  const std::string& address() const { return address_; }
  /// True if a request waits; costs one load.
  bool has_requests() const noexcept { return waiting_.load(std::memory_order_relaxed) > 0; }
  /// Answers all requests that wait.
  void answer_all(const Answer& answer);
  /// Waits for a request, and answers it. Throws: train::Interrupted at a signal that a train::Interruption handles.
  void answer_next(const Answer& answer);
  /// Tells this and later requests that the session has ended.
  void end() noexcept;

 private:
  struct Pending {
    PageRequest request;
    PageAnswer answer = {};
    bool done = false, abandoned = false;
  };

  int admit(std::string_view method, std::string_view path) const noexcept;
  PageAnswer answer_of(const detail::ServedRequest& request);
  PageAnswer wait_for_program(PageRequest request);
  void answer_front(std::unique_lock<std::mutex>& lock, const Answer& answer);

  std::string token_, address_;
  std::mutex mutex_;
  std::condition_variable arrived_, answered_;
  std::deque<std::shared_ptr<Pending>> pending_;
  std::atomic<int> waiting_ = 0;
  bool ended_ = false;
  const detail::ServeTable* table_ = nullptr;
  detail::OpenServer* server_ = nullptr;
};

}  // namespace reel::debug
