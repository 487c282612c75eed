#include <httplib.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "serve_table.h"

namespace reel::detail {

struct OpenServer {
  httplib::Server server;
  std::atomic<bool> has_ended = false;
  std::thread thread;
};

namespace {

constexpr const char* loopback = "127.0.0.1";
constexpr std::size_t most_body_bytes = std::size_t{64} << 10;

// httplib ignores SIGPIPE in the whole process, and its threads would run the program's signal handlers.
class SignalsKept {
 public:
  SignalsKept() {
    sigaction(SIGPIPE, nullptr, &before_);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask_);
  }
  ~SignalsKept() {
    sigaction(SIGPIPE, &before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalsKept(const SignalsKept&) = delete;
  SignalsKept& operator=(const SignalsKept&) = delete;

 private:
  struct sigaction before_ = {};
  sigset_t mask_ = {};
};

bool append_to(void* object, const void* bytes, std::size_t count) noexcept {
  try {
    static_cast<std::string*>(object)->append(static_cast<const char*>(bytes), count);
    return true;
  } catch (...) {
    return false;
  }
}

void answer(RequestHandler handler, const httplib::Request& request, httplib::Response& response) {
  std::string host = request.get_header_value("Host"), body;
  const char* type = "text/plain";
  response.status =
      handler.handle(handler.object, {request.method, request.path, host, request.body}, {&body, append_to}, type);
  response.set_content(std::move(body), type);
}

void set_up(httplib::Server& server, RequestHandler handler) {
  auto answer_one = [handler](const httplib::Request& request, httplib::Response& response) {
    answer(handler, request, response);
  };
  server.Get(".*", answer_one);
  server.Post(".*", answer_one);
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"Referrer-Policy", "no-referrer"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"}});
  server.set_payload_max_length(most_body_bytes);
  // A connection that is kept, and one that sends nothing, would delay the end of the program.
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(2);
  server.set_write_timeout(5);
  // httplib would let two programs listen at one port.
  server.set_socket_options([](socket_t socket) {
    int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): httplib takes it over.
  server.new_task_queue = [] { return new httplib::ThreadPool(4); };
}

OpenServer* open_server(int& port, RequestHandler handler, ModuleMessage& message) noexcept {
  try {
    SignalsKept kept;
    auto open = std::make_unique<OpenServer>();
    set_up(open->server, handler);
    int wanted = port;
    port = wanted == 0 ? open->server.bind_to_any_port(loopback)
                       : (open->server.bind_to_port(loopback, wanted) ? wanted : -1);
    if (port < 0) {
      std::snprintf(message.text, sizeof message.text, "port %d of %s is taken, or not allowed", wanted, loopback);
      return nullptr;
    }
    open->thread = std::thread([own = open.get()] {
      own->server.listen_after_bind();
      own->has_ended = true;
    });
    return open.release();
  } catch (const std::exception& error) {
    std::snprintf(message.text, sizeof message.text, "no server can be opened: %s", error.what());
    return nullptr;
  }
}

void close_server(OpenServer* server) noexcept {
  std::unique_ptr<OpenServer> closed(server);
  // A server that is stopped before it listens would go on.
  while (!closed->server.is_running() && !closed->has_ended) std::this_thread::yield();
  closed->server.stop();
  closed->thread.join();
}

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static const ServeTable table{open_server, close_server};
  return table_if_compatible(table, version, bytes);
}
