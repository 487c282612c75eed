#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include <fmt/format.h>
#include <reel/io/text.h>

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The number of reads of this thread that succeed before one fails with EIO; negative: all succeed.
thread_local int good_reads = -1;

struct FailingReads {
  explicit FailingReads(int good) { good_reads = good; }
  ~FailingReads() { good_reads = -1; }
};

std::string refusal(const std::string& path, const io::TextOptions& options = {}) {
  std::string of_text = error_of<io::FileError>([&] { io::read_text(path, options); });
  std::string of_lines = error_of<io::FileError>([&] { io::read_lines(path, options); });
  CHECK_THAT(of_text, contains("io::read_text: ") && contains("text_test.cpp:"));
  CHECK_THAT(of_lines, contains("io::read_lines: ") && contains("text_test.cpp:"));
  return of_lines;
}

}  // namespace

// Replaces the system's function for this program and the libraries that it has loaded.
extern "C" ssize_t read(int file, void* bytes, size_t size) {
  if (good_reads == 0) {
    errno = EIO;
    return -1;
  }
  if (good_reads > 0) --good_reads;
  return syscall(SYS_read, file, bytes, size);
}

TEST_CASE("a text is read whole, and by lines without their ends") {
  Folder folder;
  std::string text = "first\n\nthird ünïcode \xf0\x9f\x8c\xb3\r\nlast";
  put_bytes(folder.file(), text);
  CHECK(io::read_text(folder.file()) == text);
  std::vector<std::string> lines{"first", "", "third ünïcode \xf0\x9f\x8c\xb3", "last"};
  CHECK(io::read_lines(folder.file()) == lines);
  put_bytes(folder.file(), text + "\n");
  CHECK(io::read_lines(folder.file()) == lines);
  put_bytes(folder.file(), "");
  CHECK(io::read_text(folder.file()).empty());
  CHECK(io::read_lines(folder.file()).empty());
  CHECK(io::read_text("/dev/null").empty());
}

TEST_CASE("a text longer than what is read at once is read whole") {
  Folder folder;
  std::string text;
  std::vector<std::string> lines;
  for (int i = 0; i < 20'000; ++i) {
    lines.push_back(fmt::format("line {} ä", i));
    text += lines.back() + "\n";
  }
  put_bytes(folder.file(), text);
  CHECK(io::read_text(folder.file()) == text);
  CHECK(io::read_lines(folder.file()) == lines);
}

TEST_CASE("a text comes through a pipe") {
  Folder folder;
  REQUIRE(mkfifo(folder.file().c_str(), 0600) == 0);
  std::thread writer([&] { put_bytes(folder.file(), "a\nb\n"); });
  CHECK(io::read_lines(folder.file()) == std::vector<std::string>{"a", "b"});
  writer.join();
}

TEST_CASE("a read that fails in the middle of a text is an error, and not the text's end") {
  Folder folder;
  put_bytes(folder.file(), std::string(200'000, 'x') + "\n");
  std::string said;
  for (int good : {0, 1, 2}) {
    FailingReads failing(good);
    said = error_of<io::FileError>([&] { io::read_text(folder.file()); });
    CHECK_THAT(said, contains("cannot read '" + folder.file() + "'") && contains("Input/output error"));
  }
  CHECK_THAT(said, contains("beyond its first 131072 bytes: Input/output error"));
  FailingReads failing(3);
  CHECK_THAT(error_of<io::FileError>([&] { io::read_lines(folder.file()); }), contains("196608 bytes: Input/output"));
}

TEST_CASE("what cannot be read is an error that says why") {
  Folder folder;
  CHECK_THAT(refusal(folder.file("none")), contains("cannot open '" + folder.file("none") + "': No such file"));
  CHECK_THAT(refusal(folder.file("")), contains("cannot read '" + folder.file("") + "': Is a directory"));
  CHECK_THAT(refusal("/proc/self/mem"), contains("cannot read '/proc/self/mem': Input/output error"));
  CHECK_THAT(refusal(std::string("a\0b", 3)), contains("cannot open 'a\\u{0}b': a path cannot have a NUL"));
}

TEST_CASE("what is no text, or has no end, is refused") {
  Folder folder;
  CHECK_THAT(refusal("/dev/zero"), contains("'/dev/zero' is no text: its byte 1 is a NUL"));
  put_bytes(folder.file(), std::string("a\nb\0", 4));
  CHECK_THAT(refusal(folder.file()), contains("its byte 4 is a NUL"));
  put_bytes(folder.file(), std::string(100'000, 'x') + "\n");
  CHECK_THAT(refusal(folder.file(), {.most_bytes = 100'000}),
             contains("is longer than the 100000 bytes that are read of it"));
  CHECK(io::read_text(folder.file(), {.most_bytes = 100'001}).size() == 100'001);
  auto refused_line = [&](std::uint64_t most) {
    return error_of<io::FileError>([&] { io::read_lines(folder.file(), {.most_line_bytes = most}); });
  };
  CHECK_THAT(refused_line(99'999), contains("':1: the line is longer than 99999 bytes"));
  CHECK(refused_line(100'000).empty());
}

TEST_CASE("a text that is not UTF-8 is refused where it is not") {
  Folder folder;
  for (const char* wrong :
       {"\xff", "caf\xe9", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"}) {
    put_bytes(folder.file(), "one\n" + std::string(wrong) + "\nthree\n");
    CHECK_THAT(refusal(folder.file()), contains("':2: the line is not UTF-8 at byte ") && contains("iconv"));
  }
  put_bytes(folder.file(), "one\nab\xff");
  CHECK_THAT(refusal(folder.file()), contains("':2: the line is not UTF-8 at byte 3"));
  CHECK_THAT(error_of<io::FileError>([&] { io::read_text(folder.file()); }), contains("is not UTF-8 at byte 7"));
}

TEST_CASE("what a terminal would obey or hide is shown by its code") {
  CHECK(io::printable("plain ünïcode 漢字 \xf0\x9f\x8c\xb3 'quoted' \\") ==
        "plain ünïcode 漢字 \xf0\x9f\x8c\xb3 'quoted' \\");
  CHECK(io::printable(std::string("a\0b\n\t\x1b[2J\x7f", 10)) == "a\\u{0}b\\u{a}\\u{9}\\u{1b}[2J\\u{7f}");
  CHECK(io::printable("\u009b31m\u0085") == "\\u{9b}31m\\u{85}");
  CHECK(io::printable("\u202etxt.\u2066\u061c") == "\\u{202e}txt.\\u{2066}\\u{61c}");
  CHECK(io::printable("a\u200bb\u00ad\u2028\u2029\ufeff\U000e0041") ==
        "a\\u{200b}b\\u{ad}\\u{2028}\\u{2029}\\u{feff}\\u{e0041}");
  CHECK(io::printable("\x9b\xff\xc3") == "\\x9b\\xff\\xc3");
}
