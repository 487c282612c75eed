#include "phrases.h"

namespace samples {

using namespace reel;

std::vector<Phrase> phrases_of(const std::vector<data::LabelledTree>& trees, const data::Vocabulary& vocabulary,
                               bool all) {
  std::vector<Phrase> phrases;
  for (const data::LabelledTree& tree : trees) {
    std::vector<std::int64_t> ids = vocabulary.ids(tree.words);
    std::vector<std::vector<std::int64_t>> words(tree.nodes.size());  // of each node
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const data::LabelledTree::Node& node = tree.nodes[i];
      if (node.word >= 0) words[i] = {ids[static_cast<std::size_t>(node.word)]};
      for (std::int64_t child : node.children) {
        const auto& theirs = words[static_cast<std::size_t>(child)];
        words[i].insert(words[i].end(), theirs.begin(), theirs.end());
      }
      bool is_sentence = i + 1 == tree.nodes.size();
      if (all || is_sentence) phrases.push_back({words[i], node.value, is_sentence});
    }
  }
  return phrases;
}

Sets<data::LabelledTree> read_sentiment_trees(const RunOptions& options) {
  auto read = [](const std::string& path) {
    return data::read_trees(path, {.labels = data::TreeOptions::Labels{0, sentiments - 1}, .lower_case = true});
  };
  return read_sets<data::LabelledTree>(options, "tree", read, [&] { return made_up_trees(options.seed, 600); });
}

data::Vocabulary vocabulary_of(const std::vector<data::LabelledTree>& training, const io::Contents& file) {
  auto words = file.metadata.find("words");
  if (words != file.metadata.end()) return data::Vocabulary::from_text(words->second);
  data::WordCounts counts;
  for (const data::LabelledTree& tree : training) counts.add_all(tree.words);
  return data::Vocabulary(counts);
}

void print_sentiment_results(
    const Sets<data::LabelledTree>& sets, const std::string& items,
    const std::function<train::ConfusionMatrix(const std::vector<data::LabelledTree>&)>& evaluate) {
  std::vector<std::vector<std::string>> rows = {{"", items, "mean F1", "right, of five"}};
  for (const auto& [name, trees] : {std::pair("test", &sets.test), std::pair("dev", &sets.dev)}) {
    if (trees->empty()) continue;
    train::ConfusionMatrix matrix = evaluate(*trees);
    rows.push_back({name, std::to_string(matrix.total()), fmt::format("{:.2f} %", 100 * matrix.macro().f1),
                    fmt::format("{:.2f} %", 100 * matrix.accuracy())});
  }
  print_results(rows);
}

}  // namespace samples
