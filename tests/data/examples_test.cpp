#include <reel/data.h>
#include <reel/reel.h>

#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "io/folder.h"

// The examples in the headers of datasets, with the declarations that they use.

using namespace reel;

TEST_CASE("the example of a transformed dataset adds other noise in each epoch") {
  std::vector<Tensor> images{zeros({2, 2}), ones({2, 2})};
#include "examples/data_dataset_1.h"
  data::Loader loader(noisy, {.batch_size = 2});
  std::vector<float> first, second;
  for (auto& batch : loader) first = batch[0].to_vector<float>();
  for (auto& batch : loader) second = batch[0].to_vector<float>();
  CHECK(first.size() == 4);
  CHECK(first != second);
}

TEST_CASE("the example of a loader makes ten epochs of steps") {
  std::vector<std::string> sentences(40, "a b");
  auto collate = [](std::vector<std::string> batch) { return batch.size(); };
  std::size_t seen = 0;
  auto train_step = [&](std::size_t size) { seen += size; };
#include "examples/data_loader_1.h"
  CHECK(seen == 400);
}

TEST_CASE("the example of a vocabulary saves it with the weights") {
  reel_test::Folder folder;
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(folder.file()).parent_path());
  struct Sentence {
    std::vector<std::string> words;
  };
  std::vector<Sentence> sentences{{{"a", "b", "a"}}, {{"b", "c"}}};
  struct Model : nn::Module {
    nn::Linear output{*this, "output", 2, 3};
  } model;
  {
#include "examples/data_vocabulary_1.h"
  } io::Contents file = io::load("model.safetensors");
  CHECK(data::Vocabulary::from_text(file.metadata.at("words")).words() == std::vector<std::string>{"<unk>", "a", "b"});
  std::filesystem::current_path(before);
}

TEST_CASE("the example of image transforms changes images in a loader") {
  std::vector<Tensor> images(3, ones({1, 8, 8}));
#include "examples/data_image_1.h"
  data::Loader loader(augmented, {.batch_size = 3});
  for (auto& batch : loader) {
    CHECK(batch[0].shape() == Shape{1, 8, 8});
    CHECK(batch[0].to_vector<float>() != batch[1].to_vector<float>());
  }
}

TEST_CASE("the example of segments carries states through each sequence") {
  std::vector<Tensor> sequences{ones({10, 3}), ones({3, 3}), ones({6, 3})};
  nn::LSTM lstm(3, 5);
#include "examples/data_segments_1.h"
  CHECK(carried.size() == 0);
  CHECK(segments.epoch() == 1);
}
