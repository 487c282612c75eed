#include <reel/io/weights.h>
#include <reel/nn/linear.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/softmax.h>
#include <reel/random.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "handles.h"
#include "plugins.h"

using namespace reel_test;

namespace {

// A file for one test.
class File {
 public:
  explicit File(const std::string& name) : path_(std::filesystem::temp_directory_path() / ("reel_c_test_" + name)) {}
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A model with the parts of the plugin's model.
struct SameModel : reel::nn::Module {
  reel::nn::Linear hidden{*this, "hidden", 2, 32};
  reel::nn::Linear output{*this, "output", 32, 2};
  reel::Tensor operator()(const reel::Arg& x) const { return softmax(output(relu(hidden(x)))); }
};

// Loading this plugin must fail; returns the sentence.
std::string refusal_of(const std::string& plugin, reel_status expected, const char* weights = nullptr) {
  reel_model* model = nullptr;
  CHECK(reel_model_load(plugin.c_str(), weights, &model) == expected);
  CHECK(model == nullptr);
  return reel_last_error();
}

}  // namespace

TEST_CASE("a plugin's model computes with the weights of the file what it computes in C++") {
  File file("weights.safetensors");
  reel::manual_seed(3);
  SameModel expected;
  reel::io::save(file.path(), expected);
  ModelHandle model = load_model(classifier_plugin, file.path().c_str());
  REQUIRE(model);
  CHECK(std::string(reel_model_name(model.get())) == "classifier");
  CHECK(reel_model_parameter_count(model.get()) == 2 * 32 + 32 + 32 * 2 + 2);
  reel::Tensor x = reel::rand({5, 2});
  TensorHandle input = tensor_of(REEL_F32, {5, 2}, x.to_vector<float>());
  std::vector<TensorHandle> results = run_model(model, {input.get()});
  REQUIRE(results.size() == 1);
  CHECK(sizes_of(results[0]) == std::vector<std::int64_t>{5, 2});
  CHECK(values_of<float>(results[0]) == expected(x).to_vector<float>());
}

TEST_CASE("a plugin's model may take several tensors and return a struct of them") {
  ModelHandle model = load_model(tagger_plugin);
  REQUIRE(model);
  TensorHandle words = tensor_of<std::int64_t>(REEL_I64, {3, 2}, {1, 2, 3, 4, 5, 6});
  std::vector<TensorHandle> first = run_model(model, {words.get()});
  REQUIRE(first.size() == 3);
  CHECK(sizes_of(first[0]) == std::vector<std::int64_t>{3, 2, 3});
  CHECK(sizes_of(first[1]) == std::vector<std::int64_t>{1, 2, 16});
  std::vector<TensorHandle> second = run_model(model, {words.get(), first[1].get(), first[2].get()});
  REQUIRE(second.size() == 3);
  CHECK(values_of<float>(second[1]) != values_of<float>(first[1]));

  const reel_tensor* inputs[] = {words.get(), first[1].get(), first[2].get(), words.get()};
  reel_tensor* results[2] = {};
  std::size_t count = 0;
  CHECK(reel_model_run(model.get(), inputs, 1, results, 2, &count) == REEL_ARGUMENT_ERROR);
  CHECK(count == 3);
  CHECK(results[0] == nullptr);
  CHECK_THAT(reel_last_error(), contains("the model 'tagger' has 3 results, and there is place for 2"));
  CHECK(reel_model_run(model.get(), inputs, 4, results, 2, &count) == REEL_ARGUMENT_ERROR);
  CHECK_THAT(reel_last_error(), contains("the model 'tagger' takes from 1 to 3 tensors, not 4"));
  CHECK(reel_model_run(model.get(), inputs, 2, results, 2, &count) == REEL_ERROR);
  CHECK_THAT(reel_last_error(), contains("does not take 2 inputs; at "));
  CHECK_THAT(reel_last_error(), contains("tagger.cpp:"));
}

TEST_CASE("what a plugin's model throws, of any type, ends at the C interface as a status and a sentence") {
  ModelHandle model = load_model(faulty_plugin);
  REQUIRE(model);
  struct Row {
    std::int64_t rows;
    reel_status status;
    const char* sentence;
  };
  for (const Row& row :
       {Row{0, REEL_INTERNAL_ERROR, "reel_model_run: what was thrown is no std::exception"},
        Row{1, REEL_INTERNAL_ERROR, "reel_model_run: there is no answer"},
        Row{2, REEL_MEMORY_ERROR, "reel_model_run: there is not enough memory"}, Row{3, REEL_ERROR, "undefined"}}) {
    INFO(row.rows << " rows");
    TensorHandle x = tensor_of(REEL_F32, {row.rows}, std::vector<float>(static_cast<std::size_t>(row.rows)));
    const reel_tensor* inputs[] = {x.get()};
    reel_tensor* result = nullptr;
    std::size_t count = 7;
    CHECK(reel_model_run(model.get(), inputs, 1, &result, 1, &count) == row.status);
    CHECK(result == nullptr);
    CHECK(count == 7);
    CHECK_THAT(reel_last_error(), contains(row.sentence));
  }
  TensorHandle x = tensor_of(REEL_F32, {4}, std::vector<float>(4));
  std::vector<TensorHandle> results = run_model(model, {x.get()});
  REQUIRE(results.size() == 1);
  CHECK(sizes_of(results[0]) == std::vector<std::int64_t>{3, 2});
  CHECK(values_of<float>(results[0]) == std::vector<float>{1, 1, 2, 2, 3, 3});
}

TEST_CASE("what is no plugin of this release is refused with the reason") {
  CHECK_THAT(refusal_of("/nowhere/model.so", REEL_FILE_ERROR), contains("'/nowhere/model.so' cannot be loaded: "));
  CHECK_THAT(refusal_of("libc.so.6", REEL_FILE_ERROR), contains("'libc.so.6' cannot be loaded: "));
  CHECK_THAT(refusal_of(files_module, REEL_FILE_ERROR), contains("is no plugin: it has no function reel_plugin"));
  CHECK_THAT(refusal_of(other_release_plugin, REEL_FILE_ERROR),
             contains("compiled with the headers of another release"));
  if (*static_plugin) CHECK_THAT(refusal_of(static_plugin, REEL_FILE_ERROR), contains("has a reel of its own"));
  File text("text.so");
  std::ofstream(text.path()) << "no library";
  CHECK_THAT(refusal_of(text.path(), REEL_FILE_ERROR), contains("cannot be loaded: "));
}

TEST_CASE("weights that do not fit a plugin's model are listed") {
  File file("misfit.safetensors");
  reel::io::save(file.path(), {{"hidden.weight", reel::rand({3, 32})}, {"other", reel::rand({2})}});
  std::string sentence = refusal_of(classifier_plugin, REEL_MISFIT_ERROR, file.path().c_str());
  CHECK_THAT(sentence, contains("hidden.weight"));
  CHECK_THAT(sentence, contains("other"));
  std::ofstream(file.path()) << "no weights";
  CHECK_THAT(refusal_of(classifier_plugin, REEL_FILE_ERROR, file.path().c_str()), contains("misfit.safetensors"));
}

TEST_CASE("the tensors of a file are found by name from C") {
  File file("named.safetensors");
  reel::io::save(file.path(), {{"a", reel::tensor({1.f, 2.f})}, {"b.c", reel::tensor({7})}});
  reel_weights* loaded = nullptr;
  REQUIRE(reel_weights_load(file.path().c_str(), &loaded) == REEL_OK);
  WeightsHandle weights(loaded);
  REQUIRE(reel_weights_count(loaded) == 2);
  CHECK(std::string(reel_weights_name(loaded, 1)) == "b.c");
  CHECK(reel_weights_name(loaded, 2) == nullptr);
  reel_tensor* found = nullptr;
  CHECK(reel_weights_tensor(loaded, "c", &found) == REEL_ERROR);
  CHECK_THAT(reel_last_error(), contains("reel_weights_tensor: "));
  REQUIRE(reel_weights_tensor(loaded, "a", &found) == REEL_OK);
  weights.reset();
  CHECK(values_of<float>(TensorHandle(found)) == std::vector<float>{1, 2});
}
