#include <reel/nn/spinn.h>

#include <reel/ops.h>

#include "../../core/op_error.h"
#include "packed.h"
#include "recurrent_weights.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* reduce_name = "SPINNReduce";
constexpr const char* tracker_name = "SPINNTracker";
constexpr const char* spinn_name = "SPINN";

void check_sizes(const char* name, std::int64_t hidden_size, std::int64_t tracker_size, Location where) {
  if (hidden_size <= 0 || tracker_size < 0)
    fail<ShapeError>(name, where, "sizes cannot be hidden {}, tracker {}", hidden_size, tracker_size);
}

LinearOptions linear_of(const SPINNOptions& options) {
  return {.dtype = options.dtype, .generator = options.generator};
}

}  // namespace

SPINNReduce::SPINNReduce(std::int64_t hidden_size, SPINNOptions options, Location where)
    : arguments(
          *this, "arguments",
          (check_sizes(reduce_name, hidden_size, options.tracker_size, where), 2 * hidden_size + options.tracker_size),
          5 * hidden_size, linear_of(options), where) {}

LSTMState SPINNReduce::operator()(const LSTMState& left, const LSTMState& right, const Tensor& tracking,
                                  Location where) const {
  return call(reduce_name, {left.h, left.c, right.h, right.c, tracking}, where,
              [&](const Tensor& left_h, const Tensor& left_c, const Tensor& right_h, const Tensor& right_c,
                  const Tensor& tracking) {
                std::int64_t size = arguments.weight.size(1) / 5, known = arguments.weight.size(0) - 2 * size;
                std::int64_t batch = left_h.defined() && left_h.rank() == 2 ? left_h.size(0) : 0;
                for (const Tensor* part : {&left_h, &left_c, &right_h, &right_c})
                  if (!has_shape(*part, {batch, size}))
                    fail<ShapeError>(reduce_name, {}, "takes states (B, {}), not {}", size, shape_of(*part));
                if (tracking.defined() != (known > 0) || (known > 0 && !has_shape(tracking, {batch, known})))
                  fail<ShapeError>(reduce_name, {}, "takes what a tracker knows (B, {}), not {}", known,
                                   shape_of(tracking));
                for (const Tensor* part : {&left_h, &left_c, &right_h, &right_c, &tracking})
                  if (part->defined() && !goes_with(arguments.weight, *part))
                    fail<DTypeError>(reduce_name, {}, "{} is not of the weights' dtype {}", describe(*part),
                                     name_of(arguments.weight.dtype()));
                std::vector<Tensor> seen{left_h, right_h};
                if (known > 0) seen.push_back(tracking);
                return tree_lstm_cell(arguments(concat(seen, 1)), {left_c, right_c});
              });
}

SPINNTracker::SPINNTracker(std::int64_t hidden_size, SPINNOptions options, Location where)
    : cell(*this, "cell", (check_sizes(tracker_name, hidden_size, options.tracker_size, where), 3 * hidden_size),
           options.tracker_size, {.dtype = options.dtype, .generator = options.generator}, where),
      transition(*this, "transition", options.tracker_size, 2, linear_of(options), where) {}

LSTMState SPINNTracker::operator()(const Arg& word, const Tensor& top, const Tensor& second,
                                   const LSTMState& state) const {
  return call(tracker_name, {tensor_of(tracker_name, word), top, second, state.h, state.c}, word.location(),
              [&](const Tensor& word, const Tensor& top, const Tensor& second, const Tensor& h, const Tensor& c) {
                return cell(concat({word, top, second}, 1), {h, c});
              });
}

SPINN::SPINN(std::int64_t hidden_size, SPINNOptions options, Location where) : hidden_size(hidden_size) {
  check_sizes(spinn_name, hidden_size, options.tracker_size, where);
  if (options.reduce) reduce.emplace(*this, "reduce", hidden_size, options, where);
  if (options.tracker_size > 0) tracker.emplace(*this, "tracker", hidden_size, options, where);
}

namespace {

// The state of reading a sentence. LSTM states are (1, H).
struct Reader {
  std::vector<LSTMState> stack;
  std::span<const LSTMState> words;     // those not read yet
  std::vector<Transition> transitions;  // given, or predicted so far
  LSTMState tracked;
  std::vector<Tensor> known;  // h of the tracker at each step
  std::vector<Tensor> nodes;  // h of the top of the stack after each step

  // The h of a state of the stack, counted from the top; `nothing` if the stack is too small.
  Tensor seen(std::size_t below, const Tensor& nothing) const {
    return below < stack.size() ? stack[stack.size() - 1 - below].h : nothing;
  }
  bool can_shift() const { return !words.empty(); }
  bool can_reduce() const { return stack.size() > 1; }
  void push(LSTMState state) {
    nodes.push_back(state.h);
    stack.push_back(std::move(state));
  }
  void shift() {
    push(words.front());
    words = words.subspan(1);
  }
  LSTMState pop() {
    LSTMState top = std::move(stack.back());
    stack.pop_back();
    return top;
  }
};

// Throws unless the transitions build one tree of all words.
void check_transitions(std::span<const Transition> transitions, std::int64_t words, std::size_t sentence) {
  std::int64_t depth = 0, left = words;
  bool builds = words > 0;
  for (Transition transition : transitions) {
    bool shift = transition == Transition::shift;
    builds = builds && (shift ? left > 0 : depth > 1);
    depth += shift ? 1 : -1;
    left -= shift ? 1 : 0;
  }
  if (!builds || depth != 1 || left != 0)
    fail<Error>(spinn_name, {}, "the {} transitions of sentence {} build no tree of its {} words", transitions.size(),
                sentence, words);
}

// The states of all words, one row each.
std::vector<LSTMState> states_of_words(const Tensor& elements) {
  std::int64_t size = elements.size(1) / 2;
  std::vector<LSTMState> states;
  for (const Tensor& row : split(elements, 1)) states.push_back({slice(row, 1, 0, size), slice(row, 1, size)});
  return states;
}

// A reader for each sentence; without lists their transitions are yet to be predicted.
std::vector<Reader> readers_of(std::span<const std::int64_t> lengths, std::span<const LSTMState> words,
                               const std::optional<std::span<const std::vector<Transition>>>& transitions) {
  std::vector<Reader> readers(lengths.size());
  for (std::size_t b = 0; b < readers.size(); ++b) {
    if (lengths[b] == 0)
      fail<Error>(spinn_name, {}, "sentence {} has no words: the 0 transitions build no tree of its 0 words", b);
    if (transitions) {
      check_transitions((*transitions)[b], lengths[b], b);
      readers[b].transitions = (*transitions)[b];
    }
    auto length = static_cast<std::size_t>(lengths[b]);
    readers[b].words = words.first(length);
    words = words.subspan(length);
  }
  return readers;
}

Tensor rows_of(const std::vector<Tensor>& rows) { return rows.size() == 1 ? rows[0] : concat(rows); }

LSTMState rows_of(const std::vector<LSTMState>& states) {
  if (states.size() == 1) return states[0];
  std::vector<Tensor> h, c;
  for (const LSTMState& state : states) {
    h.push_back(state.h);
    c.push_back(state.c);
  }
  return {concat(h), concat(c)};
}

std::vector<LSTMState> split_rows(const LSTMState& states) {
  if (states.h.size(0) == 1) return {states};
  std::vector<LSTMState> rows;
  std::vector<Tensor> c = split(states.c, 1);
  for (Tensor& h : split(states.h, 1)) rows.push_back({std::move(h), std::move(c[rows.size()])});
  return rows;
}

// Runs one step of the trackers of all these sentences together; missing operands are zeros.
void track(const SPINNTracker& tracker, const std::vector<Reader*>& readers, const Tensor& nothing) {
  std::vector<Tensor> words, tops, seconds;
  std::vector<LSTMState> before;
  for (const Reader* reader : readers) {
    words.push_back(reader->words.empty() ? nothing : reader->words.front().h);
    tops.push_back(reader->seen(0, nothing));
    seconds.push_back(reader->seen(1, nothing));
    before.push_back(reader->tracked);
  }
  std::vector<LSTMState> after = split_rows(tracker(rows_of(words), rows_of(tops), rows_of(seconds), rows_of(before)));
  for (std::size_t i = 0; i < readers.size(); ++i) {
    readers[i]->tracked = after[i];
    readers[i]->known.push_back(after[i].h);
  }
}

// Appends the transition of the larger logit to each of these sentences that have a choice, and to others the only one.
void predict(const SPINNTracker& tracker, const std::vector<Reader*>& readers) {
  std::vector<Reader*> choosing;
  std::vector<Tensor> known;
  for (Reader* reader : readers) {
    reader->transitions.push_back(reader->can_reduce() ? Transition::reduce : Transition::shift);
    if (!reader->can_reduce() || !reader->can_shift()) continue;
    choosing.push_back(reader);
    known.push_back(reader->tracked.h);
  }
  if (choosing.empty()) return;
  std::vector<std::int64_t> chosen = argmax(tracker.transition(rows_of(known)), 1).to_vector<std::int64_t>();
  for (std::size_t i = 0; i < choosing.size(); ++i)
    choosing[i]->transitions.back() = chosen[i] == 0 ? Transition::shift : Transition::reduce;
}

void reduce_all(const SPINNCell& cell, const std::vector<Reader*>& readers, std::int64_t size) {
  if (readers.empty()) return;
  std::vector<LSTMState> left, right;
  std::vector<Tensor> tracking;
  for (Reader* reader : readers) {
    right.push_back(reader->pop());
    left.push_back(reader->pop());
    if (reader->tracked.h.defined()) tracking.push_back(reader->tracked.h);
  }
  LSTMState joined = cell(rows_of(left), rows_of(right), tracking.empty() ? Tensor() : rows_of(tracking));
  for (const Tensor* part : {&joined.h, &joined.c})
    if (!has_shape(*part, {std::ssize(readers), size}))
      fail<ShapeError>(spinn_name, {}, "the cell must return h and c ({}, {}), not {}", readers.size(), size,
                       shape_of(*part));
  std::vector<LSTMState> rows = split_rows(joined);
  for (std::size_t i = 0; i < readers.size(); ++i) readers[i]->push(std::move(rows[i]));
}

// Runs all transitions of all sentences, batched.
void read(const SPINN& model, const SPINNCell& cell, std::vector<Reader>& readers, bool predicted,
          const Tensor& nothing) {
  for (std::size_t step = 0;; ++step) {
    std::vector<Reader*> active, reducing;
    for (Reader& reader : readers)
      if (reader.can_shift() || reader.can_reduce()) active.push_back(&reader);
    if (active.empty()) return;
    if (model.tracker) {
      track(*model.tracker, active, nothing);
      if (predicted) predict(*model.tracker, active);
    }
    for (Reader* reader : active) {
      if (reader->transitions[step] == Transition::reduce)
        reducing.push_back(reader);
      else
        reader->shift();
    }
    reduce_all(cell, reducing, model.hidden_size);
  }
}

SPINNOutput output_of(const SPINN& model, std::vector<Reader>& readers) {
  std::vector<LSTMState> roots;
  std::vector<Tensor> known, nodes;
  std::vector<std::vector<Transition>> transitions;
  for (Reader& reader : readers) {
    roots.push_back(reader.pop());
    known.insert(known.end(), reader.known.begin(), reader.known.end());
    nodes.insert(nodes.end(), reader.nodes.begin(), reader.nodes.end());
    transitions.push_back(std::move(reader.transitions));
  }
  return {rows_of(roots), model.tracker ? model.tracker->transition(rows_of(known)) : Tensor(), rows_of(nodes),
          std::move(transitions)};
}

}  // namespace

SPINNOutput SPINN::run(const Packed& words, std::optional<Lists> transitions, const SPINNCell* cell,
                       Location where) const {
  check_packed(spinn_name, words, where);
  return call(spinn_name, {words.elements}, where, [&](const Tensor& elements) {
    if (elements.rank() != 2 || elements.size(1) != 2 * hidden_size)
      fail<ShapeError>(spinn_name, {}, "the words {} are not (N, {}), h and c of each", describe(elements),
                       2 * hidden_size);
    if (words.size() == 0) fail<ShapeError>(spinn_name, {}, "there is no sentence");
    if (transitions && std::ssize(*transitions) != words.size())
      fail<ShapeError>(spinn_name, {}, "{} lists of transitions do not fit {} sentences", transitions->size(),
                       words.size());
    if (!transitions && !tracker)
      fail<Error>(spinn_name, {}, "without a tracker no transitions are predicted; pass them, or set tracker_size");
    if (cell && !*cell) fail<Error>(spinn_name, {}, "the cell is an empty function");
    if (!cell && !reduce) fail<Error>(spinn_name, {}, "there is no cell; pass one to the call");
    SPINNCell composed = cell ? *cell : [&](const LSTMState& left, const LSTMState& right, const Tensor& tracking) {
      return (*reduce)(left, right, tracking);
    };
    std::vector<LSTMState> states = states_of_words(elements);
    std::vector<Reader> readers = readers_of(words.lengths, states, transitions);
    if (tracker)
      for (Reader& reader : readers) reader.tracked = tracker->cell.initial_state(1);
    read(*this, composed, readers, !transitions,
         zeros({1, hidden_size}, {.dtype = elements.dtype(), .device = elements.device()}));
    return output_of(*this, readers);
  });
}

}  // namespace reel::nn
