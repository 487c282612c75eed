#include "graphviz.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../io/file.h"

namespace reel::debug {

namespace {

// A file without a name: with pipes each side could wait for the other.
class UnnamedFile {
 public:
  UnnamedFile() : descriptor_(memfd_create("reel graph", MFD_CLOEXEC)) {}
  ~UnnamedFile() { close(descriptor_); }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  int descriptor() const { return descriptor_; }

  // Returns false, with errno set, on failure. The text is read from its beginning.
  bool write(std::string_view text) const {
    while (!text.empty()) {
      ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return lseek(descriptor_, 0, SEEK_SET) == 0;
  }

  std::string text() const {
    struct stat status {};
    fstat(descriptor_, &status);
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    ssize_t size = pread(descriptor_, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }

 private:
  int descriptor_;
};

// Runs dot; returns what keeps it from running, as errno, or 0 and the status with which it ended.
int run_dot(const UnnamedFile& input, const UnnamedFile& output, const UnnamedFile& errors, int& status) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  char program[] = "dot", format[] = "-Tsvg";
  char* const arguments[] = {program, format, nullptr};
  pid_t child = 0;
  int fault = posix_spawnp(&child, program, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) return fault;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return errno;
  return 0;
}

}  // namespace

std::string svg_of(const std::string& dot, const char* function, Location where) {
  UnnamedFile input, output, errors;
  if (!input.write(dot)) detail::fail<Error>(function, where, "cannot pass the graph to dot: {}", io::words_of(errno));
  int status = 0;
  int fault = run_dot(input, output, errors, status);
  if (fault == ENOENT)
    detail::fail<Error>(
        function, where,
        "pictures of graphs need Graphviz's program dot, which is not there: install Debian's graphviz, "
        "or save the graph as .dot");
  if (fault != 0) detail::fail<Error>(function, where, "cannot run Graphviz's dot: {}", io::words_of(fault));
  if (status != 0) {
    std::string said = errors.text();
    detail::fail<Error>(function, where, "Graphviz's dot failed: {}",
                        detail::printable(std::string_view(said).substr(0, said.find('\n'))));
  }
  return output.text();
}

}  // namespace reel::debug
