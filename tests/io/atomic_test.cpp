#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <reel/reel.h>

#include "io/atomic_file.h"

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The errors of the next calls of fsync, in reverse; 0 is none.
std::vector<int> errors_of_fsync;

std::string refusal(const std::string& path, const Tensor& tensor = ones({2})) {
  return error_of<io::FileError>([&] { io::save(path, {{"a", tensor}}); });
}

// Returns true if f returns true in a forked process.
bool in_a_process(const std::function<bool()>& f) {
  pid_t child = fork();
  if (child == 0) _exit(f() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns true if a signal ends a forked process that calls f.
bool is_killed(const std::function<void()>& f) {
  pid_t child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

struct stat status_of(const std::string& path) {
  struct stat found {};
  REQUIRE(stat(path.c_str(), &found) == 0);
  return found;
}

// Changes the owner of a file or a link to a user other than root and the one who runs the tests, if this process may.
constexpr uid_t foreign_user = 54321;
bool give_away(const std::string& path) { return lchown(path.c_str(), foreign_user, foreign_user) == 0; }

}  // namespace

// The library calls this function in place of the system's. It does not wait for the disk: no test cuts the power.
extern "C" int fsync(int descriptor) {
  int code = 0;
  if (!errors_of_fsync.empty()) {
    code = errors_of_fsync.back();
    errors_of_fsync.pop_back();
  }
  if (code == 0) return fcntl(descriptor, F_GETFD) < 0 ? -1 : 0;
  errno = code;
  return -1;
}

TEST_CASE("folders are created with those around them, and may be there") {
  Folder folder;
  const std::string made = folder.file("a/b/c/");
  io::create_folder("test", made, Location::here());
  CHECK(S_ISDIR(status_of(made).st_mode));
  io::create_folder("test", made, Location::here());
  io::save(folder.file("file"), {{"a", ones({2})}});
  for (const char* name : {"file", "file/inside"})
    CHECK_THAT(error_of<io::FileError>([&] { io::create_folder("test", folder.file(name), Location::here()); }),
               contains("cannot create the folder '"));
}

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
    // Limits the file size: as with a full disk, writing fails half-way.
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

TEST_CASE("a save says that the disk fails, unless a file system synchronises its folders by itself") {
  struct Case {
    int of_file, of_folder;
    const char* sentence;  // empty: saved
  };
  for (auto [of_file, of_folder, sentence] :
       {Case{EIO, 0, "Input/output error"}, Case{EINVAL, 0, "Invalid argument"}, Case{0, EIO, "Input/output error"},
        Case{0, ENOSPC, "No space left on device"}, Case{0, EINVAL, ""}, Case{0, ENOTSUP, ""}}) {
    CAPTURE(of_file, of_folder);
    Folder folder;
    errors_of_fsync = {of_folder, of_file};
    std::string said = refusal(folder.file());
    errors_of_fsync.clear();
    if (*sentence == 0)
      CHECK(said.empty());
    else
      CHECK_THAT(said, contains("cannot write '" + folder.file() + "': " + sentence));
    CHECK(folder.names().size() == (of_file == 0 ? 1 : 0));
  }
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

TEST_CASE("a saved file has no bits that let programs run as their owner, whatever the one that it replaces had") {
  Folder folder;
  io::save(folder.file(), {{"a", ones({2})}});
  REQUIRE(chmod(folder.file().c_str(), 07755) == 0);
  io::save(folder.file(), {{"b", ones({2})}});
  CHECK((status_of(folder.file()).st_mode & 07777) == 0755);
}

TEST_CASE("a file that root saves keeps the owner and the group of the one that it replaces") {
  Folder folder;
  io::save(folder.file(), {{"a", ones({2})}});
  if (!give_away(folder.file())) return reel_test::skip("only root gives files away");
  REQUIRE(chmod(folder.file().c_str(), 0640) == 0);
  io::save(folder.file(), {{"b", ones({2})}});
  struct stat found = status_of(folder.file());
  CHECK(found.st_uid == foreign_user);
  CHECK(found.st_gid == foreign_user);
  CHECK((found.st_mode & 07777) == 0640);
}

TEST_CASE("a link that another user has put into a folder that all may write to is not followed") {
  Folder folder;
  std::filesystem::create_directory(folder.file("shared"));
  REQUIRE(chmod(folder.file("shared").c_str(), 01777) == 0);
  std::string own = folder.file("own"), link = folder.file("shared/link");
  io::save(own, {{"a", ones({2})}});
  std::filesystem::create_symlink("../own", link);
  io::save(link, {{"b", ones({2})}});
  CHECK(io::load(own).find("b"));
  if (!give_away(link)) return reel_test::skip("only root makes links of another user");
  CHECK_THAT(refusal(link), contains("cannot write '" + link + "': a link of another user, in a folder that all may"));
  std::filesystem::remove(own);
  CHECK_THAT(refusal(link), contains("a link of another user"));
  CHECK_FALSE(std::filesystem::exists(own));
  // Also if it is not the first of several.
  std::filesystem::create_symlink("shared/link", folder.file("first"));
  CHECK_THAT(refusal(folder.file("first")), contains("a link of another user"));
  // In a folder that only its owner can write to, the owner of a link does not matter.
  REQUIRE(chmod(folder.file("shared").c_str(), 0755) == 0);
  io::save(link, {{"c", ones({2})}});
  CHECK(io::load(own).find("c"));
}

TEST_CASE("a file of another user in a folder that all may write to is not replaced") {
  Folder folder;
  REQUIRE(chmod(folder.file("").c_str(), 01777) == 0);
  io::save(folder.file(), {{"a", ones({2})}});
  io::save(folder.file(), {{"a", ones({2})}});
  if (!give_away(folder.file())) return reel_test::skip("only root gives files away");
  std::string before = bytes_of(folder.file());
  CHECK_THAT(refusal(folder.file()), contains("a file of another user, in a folder that all may write to"));
  CHECK(bytes_of(folder.file()) == before);
  CHECK(folder.names().size() == 1);
}

TEST_CASE("a path with a NUL is refused, and not cut") {
  Folder folder;
  std::string path = folder.file("weights") + std::string("\0.safetensors", 13);
  CHECK_THAT(refusal(path), contains("io::save: cannot write '" + folder.file("weights") +
                                     "\\u{0}.safetensors': a path cannot have a NUL"));
  CHECK(folder.names().empty());
  reel_test::put_bytes(folder.file("weights"), "text");
  CHECK_THAT(error_of<io::FileError>([&] { io::load(path); }),
             contains("io::load: cannot open '" + folder.file("weights") + "\\u{0}.safetensors': a path cannot"));
}

TEST_CASE("whether a file could be saved is said before, and changes nothing") {
  Folder folder;
  auto said = [](const std::string& path) { return error_of<io::FileError>([&] { io::check_save(path); }); };
  CHECK(said(folder.file()).empty());
  CHECK(folder.names().empty());
  CHECK_THAT(said(folder.file("none/weights")),
             contains("io::save: cannot write '" + folder.file("none/weights") + "': No such file or directory; at ") &&
                 contains("atomic_test.cpp:"));
  CHECK_THAT(said(folder.file("")), contains("no ordinary file"));
  io::save(folder.file(), {{"a", ones({2})}});
  std::string before = bytes_of(folder.file());
  CHECK(said(folder.file()).empty());
  CHECK(bytes_of(folder.file()) == before);
  if (geteuid() == 0) return;  // root may write everywhere
  REQUIRE(chmod(folder.file("").c_str(), 0500) == 0);
  CHECK_THAT(said(folder.file()), contains("Permission denied"));
  REQUIRE(chmod(folder.file("").c_str(), 0700) == 0);
}

TEST_CASE("a file is saved into a folder that may be written, but not listed") {
  Folder folder;
  std::string path = folder.file("");
  bool is_root = geteuid() == 0;  // whom no mode stops
  if (is_root && !give_away(path)) return;
  REQUIRE(chmod(path.c_str(), 0300) == 0);
  for (int count : {2, 3})
    CHECK(in_a_process([&] {
      // The folders above may be closed to the other user.
      if (chdir(path.c_str()) != 0) return false;
      if (is_root && (setgid(foreign_user) != 0 || setuid(foreign_user) != 0)) return false;
      if (open(".", O_RDONLY) >= 0) return false;
      io::save("weights.safetensors", {{"a", ones({count})}});
      return true;
    }));
  REQUIRE(chmod(path.c_str(), 0700) == 0);
  CHECK(folder.names() == std::set<std::string>{"weights.safetensors"});
  CHECK(io::load(folder.file()).tensors[0].tensor.shape() == Shape{3});
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

TEST_CASE("what a process left that was killed while it saved is removed by the next save") {
  Folder folder;
  auto save = [&] { io::save(folder.file(), {{"a", ones({2})}}); };
  save();
  std::string before = bytes_of(folder.file());
  CHECK(is_killed([&] {
    // The default action of SIGXFSZ ends the process half-way through the file.
    rlimit most{100'000, 100'000}, no_core{0, 0};
    setrlimit(RLIMIT_FSIZE, &most);
    setrlimit(RLIMIT_CORE, &no_core);
    io::save(folder.file(), {{"a", ones({1'000'000})}});
  }));
  CHECK(folder.names().size() == 2);
  CHECK(bytes_of(folder.file()) == before);
  // Removed even if another process has the id of the killed one by now.
  io::save(folder.file("other"), {{"a", ones({2})}});
  CHECK(folder.names().size() == 3);
  save();
  CHECK(folder.names() == std::set<std::string>{"other", "weights.safetensors"});
}

TEST_CASE("names that are like those of left temporary files but are something else stay") {
  Folder folder;
  std::string precious = folder.file("precious");
  reel_test::put_bytes(precious, "kept");
  std::set<std::string> others{"precious"};
  for (const char* name : {"weights.safetensors.part", "weights.safetensors.reel-.part", "weights.safetensors.reel-1-2",
                           "weights.safetensors.reel-1-2.part.txt", "weights.safetensors.reel-a-2.part",
                           "Weights.safetensors.reel-1-2.part", ".reel-1-2.part", "weights.safetensors.1-2.part"}) {
    reel_test::put_bytes(folder.file(name), "kept");
    others.insert(name);
  }
  std::filesystem::create_directory(folder.file("weights.safetensors.reel-1-3.part"));
  std::filesystem::create_symlink("precious", folder.file("weights.safetensors.reel-1-4.part"));
  REQUIRE(mkfifo(folder.file("weights.safetensors.reel-1-5.part").c_str(), 0600) == 0);
  for (int i : {3, 4, 5}) others.insert("weights.safetensors.reel-1-" + std::to_string(i) + ".part");
  io::save(folder.file(), {{"a", ones({2})}});
  others.insert("weights.safetensors");
  CHECK(folder.names() == others);
  CHECK(bytes_of(precious) == "kept");
}

TEST_CASE("a save leaves the temporary file of another that is under way alone") {
  Folder folder;
  std::string path = folder.file();
  {
    io::AtomicFile slow("test", path, Location::here());
    std::string text = "written slowly";
    slow.write(std::as_bytes(std::span(text)));
    CHECK(in_a_process([&] {
      io::save(path, {{"a", ones({2})}});
      return true;
    }));
    io::save(path, {{"b", ones({2})}});
    CHECK(io::load(path).find("b"));
    slow.commit();
  }
  CHECK(bytes_of(path) == "written slowly");
  CHECK(folder.names() == std::set<std::string>{"weights.safetensors"});
}

TEST_CASE("processes and threads that save to one name all succeed, and one of their files is there whole") {
  Folder folder;
  auto save_often = [&](std::int64_t size) {
    for (int i = 0; i < 30; ++i) io::save(folder.file(), {{"a", ones({size})}});
  };
  std::vector<pid_t> children;
  for (std::int64_t size : {10, 20}) {
    pid_t child = fork();
    if (child == 0) {
      try {
        save_often(size);
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  std::string failure;
  std::thread other([&] { failure = error_of<io::FileError>([&] { save_often(30); }); });
  CHECK(error_of<io::FileError>([&] { save_often(40); }).empty());
  other.join();
  CHECK(failure.empty());
  for (pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  CHECK(io::load(folder.file()).at("a").numel() % 10 == 0);
  CHECK(folder.names() == std::set<std::string>{"weights.safetensors"});
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

TEST_CASE("of the names that the library makes no link is followed, neither of a file nor of a folder") {
  Folder folder;
  reel_test::put_bytes(folder.file("precious"), "kept");
  std::filesystem::create_directories(folder.file("run/elsewhere"));
  std::filesystem::create_directory_symlink("run", folder.file("link"));
  auto write = [&](const char* name, int own_names) {
    std::string path = folder.file("link/") + name, text = "written";
    return error_of<io::FileError>([&] {
      io::AtomicFile file("test", path, Location::here(), own_names);
      file.write(std::as_bytes(std::span(text)));
      file.commit();
    });
  };
  std::filesystem::create_symlink("../precious", folder.file("run/file"));
  CHECK(write("file", 1).empty());
  CHECK(bytes_of(folder.file("precious")) == "kept");
  CHECK_FALSE(std::filesystem::is_symlink(folder.file("run/file")));
  CHECK(write("new/folders/file", 3).empty());
  CHECK(bytes_of(folder.file("run/new/folders/file")) == "written");
  std::filesystem::create_directory_symlink("elsewhere", folder.file("run/folder"));
  CHECK_THAT(write("folder/file", 2), contains("cannot write '" + folder.file("link/folder/file") + "': "));
  CHECK(std::filesystem::is_empty(folder.file("run/elsewhere")));
  CHECK(write("folder/file", 1).empty());
  CHECK(bytes_of(folder.file("run/elsewhere/file")) == "written");
}
