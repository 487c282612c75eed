#include <reel/nn/spinn.h>

#include <reel/ops.h>

#include "../core/op_error.h"
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

SPINN::SPINN(std::int64_t hidden_size, SPINNOptions options, Location where)
    : reduce(*this, "reduce", hidden_size, options, where) {
  if (options.tracker_size > 0) tracker.emplace(*this, "tracker", hidden_size, options, where);
}

namespace {

// The state of reading a sentence. LSTM states are (1, H).
struct Reader {
  std::vector<LSTMState> stack;
  std::span<const LSTMState> words;  // those not read yet
  std::span<const Transition> transitions;
  LSTMState tracked;
  std::vector<Tensor> known;  // h of the tracker at each step

  // The h of a state of the stack, counted from the top; `nothing` if the stack is too small.
  Tensor seen(std::size_t below, const Tensor& nothing) const {
    return below < stack.size() ? stack[stack.size() - 1 - below].h : nothing;
  }
  void shift() {
    stack.push_back(words.front());
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

std::vector<Reader> readers_of(std::span<const std::int64_t> lengths, std::span<const LSTMState> words,
                               std::span<const std::vector<Transition>> transitions) {
  std::vector<Reader> readers(transitions.size());
  for (std::size_t b = 0; b < readers.size(); ++b) {
    check_transitions(transitions[b], lengths[b], b);
    auto length = static_cast<std::size_t>(lengths[b]);
    readers[b].words = words.first(length);
    readers[b].transitions = transitions[b];
    words = words.subspan(length);
  }
  return readers;
}

LSTMState rows_of(const std::vector<LSTMState>& states) {
  std::vector<Tensor> h, c;
  for (const LSTMState& state : states) {
    h.push_back(state.h);
    c.push_back(state.c);
  }
  return {concat(h), concat(c)};
}

std::vector<LSTMState> split_rows(const LSTMState& states) {
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
  std::vector<LSTMState> after = split_rows(tracker(concat(words), concat(tops), concat(seconds), rows_of(before)));
  for (std::size_t i = 0; i < readers.size(); ++i) {
    readers[i]->tracked = after[i];
    readers[i]->known.push_back(after[i].h);
  }
}

void reduce_all(const SPINNReduce& reduce, const std::vector<Reader*>& readers) {
  if (readers.empty()) return;
  std::vector<LSTMState> left, right;
  std::vector<Tensor> tracking;
  for (Reader* reader : readers) {
    right.push_back(reader->pop());
    left.push_back(reader->pop());
    if (reader->tracked.h.defined()) tracking.push_back(reader->tracked.h);
  }
  Tensor known = tracking.empty() ? Tensor() : concat(tracking);
  std::vector<LSTMState> joined = split_rows(reduce(rows_of(left), rows_of(right), known));
  for (std::size_t i = 0; i < readers.size(); ++i) readers[i]->stack.push_back(std::move(joined[i]));
}

// Runs all transitions of all sentences, batched.
void read(const SPINN& model, std::vector<Reader>& readers, const Tensor& nothing) {
  for (std::size_t step = 0;; ++step) {
    std::vector<Reader*> active, reducing;
    for (Reader& reader : readers)
      if (step < reader.transitions.size()) active.push_back(&reader);
    if (active.empty()) return;
    if (model.tracker) track(*model.tracker, active, nothing);
    for (Reader* reader : active) {
      if (reader->transitions[step] == Transition::reduce)
        reducing.push_back(reader);
      else
        reader->shift();
    }
    reduce_all(model.reduce, reducing);
  }
}

}  // namespace

SPINNOutput SPINN::operator()(const Packed& words, std::span<const std::vector<Transition>> transitions,
                              Location where) const {
  check_packed(spinn_name, words, where);
  return call(spinn_name, {words.elements}, where, [&](const Tensor& elements) {
    std::int64_t size = reduce.arguments.weight.size(1) / 5;
    if (elements.rank() != 2 || elements.size(1) != 2 * size)
      fail<ShapeError>(spinn_name, {}, "the words {} are not (N, {}), h and c of each", describe(elements), 2 * size);
    if (std::ssize(transitions) != words.size() || words.size() == 0)
      fail<ShapeError>(spinn_name, {}, "{} lists of transitions do not fit {} sentences", transitions.size(),
                       words.size());
    std::vector<LSTMState> states = states_of_words(elements);
    std::vector<Reader> readers = readers_of(words.lengths, states, transitions);
    if (tracker)
      for (Reader& reader : readers) reader.tracked = tracker->cell.initial_state(1);
    read(*this, readers, zeros({1, size}, {.dtype = elements.dtype(), .device = elements.device()}));

    std::vector<LSTMState> roots;
    std::vector<Tensor> known;
    for (Reader& reader : readers) {
      roots.push_back(reader.pop());
      known.insert(known.end(), reader.known.begin(), reader.known.end());
    }
    return SPINNOutput{rows_of(roots), tracker ? tracker->transition(concat(known)) : Tensor()};
  });
}

}  // namespace reel::nn
