#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <reel/reel.h>

#include <memory>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

using reel::Tensor;

constexpr std::int64_t row_count = 10'000, column_count = 100'000, entries_a_row = 500, width = 64;
constexpr std::int64_t entry_count = row_count * entries_a_row;
constexpr double work = 2.0 * entry_count * width;

// Equally many entries in each row, one in each of equal intervals.
struct Sparse {
  reel::CSRMatrix ours;
  at::Tensor theirs, their_rows, their_columns, their_values;
};

Sparse sparse() {
  Tensor start = reel::expand(reel::arange(entries_a_row) * (column_count / entries_a_row), {row_count, entries_a_row});
  Tensor within = reel::randint(0, column_count / entries_a_row, {row_count, entries_a_row});
  Pair columns = both(reel::reshape(reel::copy(start + within), {entry_count}));
  Pair offsets = both(reel::arange(row_count + 1) * entries_a_row), values = numbers({entry_count});
  reel::CSRMatrix matrix = reel::csr_matrix(offsets.ours, columns.ours, values.ours, {row_count, column_count});
  at::Tensor theirs =
      at::sparse_csr_tensor(offsets.theirs, columns.theirs, values.theirs, {row_count, column_count}, at::kFloat);
  at::Tensor rows = at::arange(row_count, at::kLong).repeat_interleave(entries_a_row);
  return {matrix, theirs, rows, columns.theirs, values.theirs};
}

const std::string of_product = " CSR 1e4 x 1e5, 0.5 %, x 64";

PeerEntry forward_case() {
  return {"sparse", "product," + of_product, [] {
            Sparse a = sparse();
            Pair x = numbers({column_count, width});
            return PeerCase{"sparse",
                            "product," + of_product,
                            work,
                            "GFLOP/s",
                            [=] { reel::matmul(a.ours, x.ours); },
                            [=] { at::mm(a.theirs, x.theirs); }};
          }};
}

// By the dense operand: libtorch multiplies the transposed matrix, made beforehand.
PeerEntry dense_gradient_case() {
  return {"sparse", "gradient by x," + of_product, [] {
            Sparse a = sparse();
            Pair x = numbers({column_count, width}), d = numbers({row_count, width});
            auto tape = std::make_shared<reel::Tape>(reel::TapeOptions{.persistent = true});
            tape->watch(x.ours);
            Tensor y = reel::matmul(a.ours, x.ours);
            at::Tensor transposed = at::sparse_coo_tensor(at::stack({a.their_columns, a.their_rows}), a.their_values,
                                                          {column_count, row_count})
                                        .coalesce()
                                        .to_sparse_csr();
            return PeerCase{"sparse",
                            "gradient by x," + of_product,
                            work,
                            "GFLOP/s",
                            [=] { tape->gradient(y, x.ours, {.seed = d.ours}); },
                            [=] { at::mm(transposed, d.theirs); }};
          }};
}

// By the values: libtorch has no product at the entries alone on this processor, so rows are gathered, a part at a time.
PeerEntry value_gradient_case() {
  return {"sparse", "gradient by A," + of_product, [] {
            Sparse a = sparse();
            Pair x = numbers({column_count, width}), d = numbers({row_count, width});
            auto tape = std::make_shared<reel::Tape>(reel::TapeOptions{.persistent = true});
            tape->watch(a.ours.values());
            Tensor y = reel::matmul(a.ours, x.ours);
            return PeerCase{
                "sparse",
                "gradient by A," + of_product,
                work,
                "GFLOP/s",
                [=] { tape->gradient(y, a.ours.values(), {.seed = d.ours}); },
                [=] {
                  std::vector<at::Tensor> parts;
                  constexpr std::int64_t part = 16'384;
                  for (std::int64_t start = 0; start < entry_count; start += part) {
                    at::Tensor rows = a.their_rows.slice(0, start, start + part);
                    at::Tensor columns = a.their_columns.slice(0, start, start + part);
                    parts.push_back((d.theirs.index_select(0, rows) * x.theirs.index_select(0, columns)).sum(1));
                  }
                  at::cat(parts);
                }};
          }};
}

// A look-up, a loss, their backward and a step of plain gradient descent. libtorch's side does what its SGD does with a sparse gradient.
PeerEntry embedding_case(std::int64_t count, std::int64_t size) {
  std::string name = "embedding of 4096 in (" + std::to_string(count) + ", " + std::to_string(size) + "), SGD";
  return {
      "sparse", name, [=] {
        TorchRecords tensors_that_can_be_saved;
        constexpr std::int64_t length = 4096;
        Pair table = numbers({count, size}), rows = indices(length, count);
        table.ours.requires_grad();
        table.theirs.requires_grad_(true);
        auto sgd =
            std::make_shared<reel::optim::SGD>(std::vector{table.ours}, reel::optim::SGDOptions{.learning_rate = 1e-3});
        return PeerCase{"sparse", name,
                        // The rows are read, their gradients read and written, the rows read and written.
                        5.0 * 4 * length * static_cast<double>(size), "GB/s",
                        [=] {
                          reel::Tape tape;
                          tape.backward(sum(square(reel::embedding(table.ours, rows.ours, {.row_gradient = true}))));
                          sgd->step();
                          sgd->zero_grad();
                        },
                        [=] {
                          TorchRecords records;
                          at::Tensor y = at::embedding(table.theirs, rows.theirs, -1, false, /*sparse=*/true);
                          at::sum(at::square(y)).backward();
                          at::NoGradGuard pause;
                          at::Tensor parameter = table.theirs;
                          parameter.add_(parameter.grad(), -1e-3);
                          parameter.mutable_grad() = at::Tensor();
                        }};
      }};
}

}  // namespace

std::vector<PeerEntry> sparse_cases() {
  return {forward_case(), dense_gradient_case(), value_gradient_case(), embedding_case(1'000'000, 64),
          embedding_case(100'000, 128)};
}

}  // namespace reel_bench
