// A model in C++ that Python trains: see train.py. The line in NB_MODULE makes it a class of Python.

#include <reel/python.h>
#include <reel/reel.h>

using namespace reel;

struct Tagger : nn::Module {
  nn::Embedding words;
  nn::LSTM lstm;
  nn::Linear output;

  Tagger(std::int64_t count, std::int64_t size, std::int64_t tags)
      : words{*this, "words", count, size},
        lstm{*this, "lstm", size, size, {.bidirectional = true}},
        output{*this, "output", 2 * size, tags} {}

  // The scores (T, tags) of a sentence (T) of word indices.
  Tensor operator()(const Arg& sentence) const {
    Tensor steps = unsqueeze(words(sentence), 1);
    return output(squeeze(lstm(steps).output, 1));
  }
};

NB_MODULE(tagger, m) {
  python::module<Tagger, std::int64_t, std::int64_t, std::int64_t>(m, "Tagger", "count", "size",
                                                                   nanobind::arg("tags") = 3);
}
