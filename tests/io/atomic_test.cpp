#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <reel/reel.h>

#include "catch.h"
#include "folder.h"

using namespace reel;
using reel_test::bytes_of;
using reel_test::contains;
using reel_test::error_of;
using reel_test::Folder;

namespace {

std::string refusal(const std::string& path, const Tensor& tensor = ones({2})) {
  return error_of<io::FileError>([&] { io::save(path, {{"a", tensor}}); });
}

// Whether f returns true in a process of its own.
bool in_a_process(const std::function<bool()>& f) {
  pid_t child = fork();
  if (child == 0) _exit(f() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("saving over a file replaces it whole") {
  Folder folder;
  io::save(folder.file(), {{"a", ones({1000})}});
  io::save(folder.file(), {{"b", ones({2})}});
  CHECK(io::load(folder.file()).tensors.size() == 1);
  CHECK(io::load(folder.file()).find("b"));
  CHECK(folder.names().size() == 1);
}

TEST_CASE("a file that is open while another is saved in its place stays whole") {
  Folder folder;
  io::save(folder.file(), {{"a", ones({1000})}});
  std::string before = bytes_of(folder.file());
  std::ifstream open(folder.file(), std::ios::binary);
  io::save(folder.file(), {{"b", ones({2})}});
  CHECK(std::string(std::istreambuf_iterator<char>(open), {}) == before);
}

TEST_CASE("a file cannot be saved where there is no folder, or something else has its name") {
  Folder folder;
  CHECK_THAT(refusal(folder.file("none/weights")),
             contains("cannot write '" + folder.file("none/weights")) && contains("No such file or directory"));
  CHECK_THAT(refusal(folder.file("")), contains("no ordinary file"));
  CHECK_THAT(refusal("/dev/null"), contains("no ordinary file"));
  CHECK(folder.names().empty());
}

TEST_CASE("a disk that becomes full leaves the old file and nothing else") {
  Folder folder;
  io::save(folder.file(), {{"a", ones({2})}});
  std::string before = bytes_of(folder.file());
  bool refused = in_a_process([&] {
    // No file can be larger: as with a full disk, writing fails half-way.
    signal(SIGXFSZ, SIG_IGN);
    rlimit most{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &most);
    std::string said = refusal(folder.file(), ones({1'000'000}));
    return said.find("cannot write '" + folder.file() + "': File too large") != said.npos;
  });
  CHECK(refused);
  CHECK(bytes_of(folder.file()) == before);
  CHECK(folder.names() == std::set<std::string>{"weights.safetensors"});
}

TEST_CASE("a saved file keeps the rights of the one that it replaces, and a link goes on to be one") {
  Folder folder;
  io::save(folder.file("own"), {{"a", ones({2})}});
  mode_t mask = umask(0);
  umask(mask);
  struct stat found;
  REQUIRE(stat(folder.file("own").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == (0666 & ~mask));
  REQUIRE(chmod(folder.file("own").c_str(), 0640) == 0);
  std::filesystem::create_symlink("own", folder.file("link"));
  io::save(folder.file("link"), {{"b", ones({2})}});
  REQUIRE(stat(folder.file("own").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0640);
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  CHECK(io::load(folder.file("own")).find("b"));
}

TEST_CASE("a file may be saved by a name without a folder") {
  Folder folder;
  CHECK(in_a_process([&] {
    if (chdir(folder.file("").c_str()) != 0) return false;
    io::save("here", {{"a", ones({2})}});
    return io::load("here").tensors.size() == 1;
  }));
  CHECK(folder.names() == std::set<std::string>{"here"});
}

TEST_CASE("what a process left that was stopped while it saved is in nobody's way") {
  Folder folder;
  auto save = [&] { io::save(folder.file(), {{"a", ones({2})}}); };
  save();
  // Names of this process that come next, as one of the same number has left them.
  std::set<std::string> left;
  for (int i = 0; i < 200; ++i) {
    std::string name = "." + std::to_string(getpid()) + "-" + std::to_string(i) + ".part";
    for (const std::string& begin : {std::string("weights.safetensors"), std::string()}) {
      reel_test::put_bytes(folder.file(begin + name), "half");
      left.insert(begin + name);
    }
  }
  save();
  CHECK(io::load(folder.file()).find("a"));
  left.insert("weights.safetensors");
  CHECK(folder.names() == left);
}

TEST_CASE("a file's name may be as long as the system lets it be") {
  Folder folder;
  std::string longest(255, 'n');
  io::save(folder.file(longest), {{"a", ones({2})}});
  CHECK(io::load(folder.file(longest)).find("a"));
  CHECK_THAT(refusal(folder.file(longest + "n")), contains("File name too long"));
  CHECK(folder.names() == std::set<std::string>{longest});
}

TEST_CASE("a link to what is not there yet goes on to be one") {
  Folder folder;
  std::filesystem::create_directory(folder.file("inner"));
  std::filesystem::create_symlink("inner/second", folder.file("first"));
  std::filesystem::create_symlink("weights", folder.file("inner/second"));
  io::save(folder.file("first"), {{"a", ones({2})}});
  CHECK(std::filesystem::is_symlink(folder.file("first")));
  CHECK(std::filesystem::is_symlink(folder.file("inner/second")));
  CHECK(io::load(folder.file("inner/weights")).find("a"));
  std::filesystem::create_symlink("round", folder.file("round"));
  CHECK_THAT(refusal(folder.file("round")), contains("Too many levels of symbolic links"));
}
