#include <bit>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <numbers>

#include <reel/reel.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// True, after a line that says so, in a build without libsndfile.
bool lacks_sound() {
  std::string said = error_of<io::FileError>([] { io::read_audio(reel_test::by_python + "tone.flac"); });
  if (said.find("libreel_sound.so") == said.npos) return false;
  std::cout << "REEL-SKIP: this build has no libsndfile\n";
  return true;
}

// The lowest bytes of an integer, the lowest first.
std::string little(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

enum Encoding : std::uint8_t { pcm = 1, floats = 3, mu_law = 7, adpcm = 0x11 };

// Source: Microsoft and IBM, Multimedia Programming Interface and Data Specifications 1.0 (1991), "WAVE".
std::string wav(Encoding encoding, unsigned bits, unsigned channels, const std::string& data, std::string chunks = "") {
  unsigned frame = channels * bits / 8, rate = 8000;
  chunks = "fmt " + little(16, 4) + little(encoding, 2) + little(channels, 2) + little(rate, 4) +
           little(std::uint64_t{rate} * frame, 4) + little(frame, 2) + little(bits, 2) + chunks + "data" +
           little(data.size(), 4) + data;
  return "RIFF" + little(chunks.size() + 4, 4) + "WAVE" + chunks;
}

std::string integers(const std::vector<std::int64_t>& values, int bytes) {
  std::string text;
  for (std::int64_t value : values) text += little(static_cast<std::uint64_t>(value), bytes);
  return text;
}

}  // namespace

TEST_CASE("WAV files of integers of every width are numbers from -1 to 1") {
  if (lacks_sound()) return;
  Folder folder;
  for (int bits : {8, 16, 24, 32}) {
    CAPTURE(bits);
    std::int64_t half = std::int64_t{1} << (bits - 1), none = bits == 8 ? half : 0;
    std::vector<std::int64_t> values{0, 1, -1, half / 2, half - 1, -half}, stored;
    for (std::int64_t value : values) stored.push_back(value + none);
    put_bytes(folder.file("a.wav"), wav(pcm, static_cast<unsigned>(bits), 1, integers(stored, bits / 8)));
    io::Audio audio = io::read_audio(folder.file("a.wav"));
    CHECK(audio.sample_rate == 8000);
    CHECK(audio.seconds() == 6.0 / 8000);
    CHECK(io::Audio{audio.samples, 0}.seconds() == 0);
    CHECK(io::Audio{}.seconds() == 0);
    REQUIRE(audio.samples.shape() == Shape{1, 6});
    REQUIRE(audio.samples.dtype() == f32);
    std::vector<float> found = audio.samples.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(found[i] == static_cast<float>(static_cast<double>(values[i]) / static_cast<double>(half)));
  }
}

TEST_CASE("WAV files of floating-point numbers of mu-law and of big-endian numbers, and with other chunks, are read") {
  if (lacks_sound()) return;
  Folder folder;
  std::string path = folder.file("a.wav"), wide, narrow;
  for (double x : {0.5, -0.25, 1.5, 0.125, -1.0, 1e-3}) {
    narrow += little(std::bit_cast<std::uint32_t>(static_cast<float>(x)), 4);
    wide += little(std::bit_cast<std::uint64_t>(x), 8);
  }
  std::vector<float> wanted{0.5F, 1.5F, -1.0F, -0.25F, 0.125F, 1e-3F};
  // A chunk of an odd number of bytes has one more.
  std::string early = wav(floats, 32, 2, narrow), chunk = "JUNK" + little(3, 4) + "abc" + '\0';
  early.replace(4, 4, little(early.size() - 8 + chunk.size(), 4)).insert(12, chunk);
  for (const std::string& bytes : {wav(floats, 32, 2, narrow), wav(floats, 64, 2, wide),
                                   wav(floats, 32, 2, narrow, "LIST" + little(6, 4) + "INFOab"),
                                   wav(floats, 32, 2, narrow) + "odd " + little(1, 4) + std::string(2, '\0'), early}) {
    put_bytes(path, bytes);
    Tensor samples = io::read_audio(path).samples;
    REQUIRE(samples.shape() == Shape{2, 3});
    CHECK(samples.to_vector<float>() == wanted);
  }
  // Source: ITU-T G.711, table 2a: 0x80 is the largest number, 0xff and 0x7f are the zeros.
  put_bytes(path, wav(mu_law, 8, 1, "\x80\xff\x7f"));
  CHECK(io::read_audio(path).samples.to_vector<float>() == std::vector<float>{32124.0F / 32768, 0, 0});
  // RIFX: each number has its highest byte first.
  put_bytes(path, std::string("RIFX\0\0\0\x28WAVEfmt \0\0\0\x10\0\1\0\2\0\0\x1f\x40\0\0\x7d\0\0\4\0\x10"
                              "data\0\0\0\4\x40\0\xe0\0",
                              48));
  CHECK(io::read_audio(path).samples.to_vector<float>() == std::vector<float>{0.5F, -0.25F});
  put_bytes(path, wav(pcm, 16, 3, ""));
  CHECK(io::read_audio(path).samples.shape() == Shape{3, 0});
}

TEST_CASE("a FLAC file that another program has written is read") {
  if (lacks_sound()) return;
  io::Audio audio = io::read_audio(reel_test::by_python + "tone.flac");
  CHECK(audio.sample_rate == 16000);
  REQUIRE(audio.samples.shape() == Shape{2, 1000});
  Tensor t = arange(1000, {.dtype = f64}) * (2 * std::numbers::pi * 440 / 16000);
  CHECK(max(abs(audio.samples(0) - sin(t) * 0.5)).item() < 1.01 / 65536);
  CHECK(max(abs(audio.samples(1) - cos(t) * 0.25)).item() < 1.01 / 65536);
  Folder folder;
  std::string whole = bytes_of(reel_test::by_python + "tone.flac");
  for (std::size_t part = 0; part < 10; ++part) {
    put_bytes(folder.file("a.flac"), whole.substr(0, part * whole.size() / 10));
    CHECK_THAT(error_of<io::FileError>([&] { io::read_audio(folder.file("a.flac")); }),
               contains("io::read_audio: '" + folder.file("a.flac") + "' ") && contains("audio_test.cpp:"));
  }
}

TEST_CASE("a FLAC file that is cut off or damaged is refused") {
  if (lacks_sound()) return;
  Folder folder;
  std::string path = folder.file("a.flac"), whole = bytes_of(reel_test::by_python + "tone.flac"), damaged = whole;
  damaged[whole.size() / 2] ^= 0x55;
  for (const std::string& bytes : {damaged, whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1)}) {
    CAPTURE(bytes.size());
    put_bytes(path, bytes);
    CHECK_THAT(error_of<io::FileError>([&] { io::read_audio(path); }),
               contains("'" + path + "' cannot be decoded: ") && contains("audio_test.cpp:"));
  }
}

TEST_CASE("a sound that is written is read again, whatever its length, layout and number of channels") {
  if (lacks_sound()) return;
  Folder folder;
  std::string path = folder.file("a.wav");
  manual_seed(7);
  for (const Shape& shape : {Shape{1, 1}, Shape{2, 40'001}, Shape{7, 5000}, Shape{1024, 33}, Shape{2, 0}}) {
    CAPTURE(shape[0], shape[1]);
    Tensor integers = randint(-32768, 32768, shape), samples = to(integers, f32) / 32768;
    for (io::SampleFormat format : {io::SampleFormat::pcm16, io::SampleFormat::f32}) {
      io::write_wav(path, samples, 44100, {.format = format});
      std::string bytes = bytes_of(path);
      io::Audio audio = io::read_audio(path);
      CHECK(audio.sample_rate == 44100);
      REQUIRE(audio.samples.shape() == shape);
      CHECK(audio.samples.to_vector<float>() == samples.to_vector<float>());
      io::write_wav(path, transpose(contiguous(transpose(samples))), 44100, {.format = format});
      CHECK(bytes_of(path) == bytes);
    }
  }
  {
    reel_test::InFolder here;
    io::write_wav("clip.wav", tensor<float>({{0.5F, 0.25F}, {-0.5F, 0.75F}}), 8000);
#include "examples/io_audio_1.h"
    CHECK(mono.to_vector<float>() == std::vector<float>{0, 0.5F});
  }
  Tensor loud = tensor<float>({-3, -1, 0.00001F, 1, 1e9F});
  io::write_wav(path, loud, 8000);
  CHECK(bytes_of(path) == wav(pcm, 16, 1, integers({-32768, -32768, 0, 32767, 32767}, 2)));
  io::write_wav(path, loud, 8000, {.format = io::SampleFormat::f32});
  CHECK(io::read_audio(path).samples.to_vector<float>() == loud.to_vector<float>());
  CHECK(folder.names() == std::set<std::string>{"a.wav"});
}

TEST_CASE("files that are no sound, cut off, or claim more than they have are refused") {
  if (lacks_sound()) return;
  Folder folder;
  std::string path = folder.file("a.wav");
  auto said = [&](const std::string& bytes, const io::AudioOptions& options = {}) {
    put_bytes(path, bytes);
    return error_of<io::FileError>([&] { io::read_audio(path, options); });
  };
  std::string good = wav(pcm, 16, 2, integers(std::vector<std::int64_t>(2000, 5), 2)), huge = good, unfinished = good;
  huge.replace(40, 4, "\xff\xff\xff\x7f");
  for (std::size_t at : {4UL, 40UL}) unfinished.replace(at, 4, std::string(4, '\0'));
  for (const std::string& bytes : {std::string(), std::string("RIFF"), std::string("no sound at all"),
                                   "FORM" + good.substr(4), bytes_of(reel_test::by_python + "rgb.png")})
    CHECK_THAT(said(bytes), contains("is neither a WAV nor a FLAC file; at ") && contains("audio_test.cpp:"));
  CHECK_THAT(said(good.substr(0, 12)), contains("does not say how its samples are encoded: it is cut off or faulty"));
  CHECK_THAT(said(good.substr(0, 20)), contains("is cut off in its header"));
  for (std::size_t count : {30UL, 36UL, 40UL}) CHECK_THAT(said(good.substr(0, count)), contains("is no readable WAV"));
  CHECK_THAT(said(good.substr(0, 2044)),
             contains("says that it has 1000 frames, and has 500: it is cut off or faulty"));
  CHECK_THAT(said(good.substr(0, good.size() - 1)), contains("and has 999: it is cut off"));
  CHECK_THAT(said(huge), contains("says that it has 536870911 frames, and has 1000: it is cut off"));
  CHECK_THAT(said(unfinished), contains("says that it has no frames, and has 4044 bytes: it was not finished"));
  CHECK_THAT(said(good, {.most_samples = 1999}), contains("has more than 1999 samples"));
  CHECK_THAT(said(wav(adpcm, 4, 1, std::string(512, '\0'))),
             contains("has samples of the encoding 17, which is not read"));
  CHECK_THAT(said(wav(pcm, 16, 0, "abcd")), contains("is no readable WAV or FLAC file: "));
  CHECK_THAT(said(wav(pcm, 40, 1, "abcde")), contains("is no readable WAV or FLAC file: "));
  put_bytes(path, good);
  CHECK(io::read_audio(path, {.most_samples = 2000}).samples.numel() == 2000);
  CHECK_THAT(error_of<Error>([&] { io::read_audio(path, {.most_samples = -1}); }), contains("most_samples is -1"));
  CHECK_THAT(error_of<io::FileError>([&] { io::read_audio(folder.file("none")); }), contains("No such file"));
}

TEST_CASE("what is no sound is not written") {
  if (lacks_sound()) return;
  Folder folder;
  auto said = [&](const Tensor& x, std::int64_t rate = 8000) {
    return error_of<Error>([&] { io::write_wav(folder.file("a.wav"), x, rate); });
  };
  CHECK_THAT(said(Tensor()), contains("io::write_wav: the samples are undefined; at "));
  CHECK_THAT(said(zeros({2, 5}, {.dtype = f64})), contains("takes f32, not (2, 5) f64: to(x, f32) is it"));
  for (const Shape& shape : {Shape{}, Shape{0, 5}, Shape{1025, 1}, Shape{1, 2, 5}})
    CHECK_THAT(said(zeros(shape)), contains("takes samples of shape (channels, frames) with 1 to 1024 channels"));
  CHECK_THAT(said(expand(zeros({1}), {std::int64_t{1} << 32})), contains("holds less than 4 GiB"));
  CHECK_THAT(said(zeros({5}), 0), contains("sample_rate is 0, but must be from 1 to 1073741823"));
  CHECK_THAT(said(zeros({5}), std::int64_t{1} << 31), contains("must be from 1"));
  CHECK_THAT(said(full({5}, NAN)), contains("a sample is infinite or no number"));
  CHECK(folder.names().empty());
  CHECK_THAT(error_of<io::FileError>([&] { io::write_wav(folder.file("none/a.wav"), zeros({5}), 8000); }),
             contains("No such file"));
  CHECK_THAT(error_of<io::FileError>([&] { io::write_wav("/dev/full", zeros({500'000}), 8000); }),
             contains("io::write_wav: "));
}
