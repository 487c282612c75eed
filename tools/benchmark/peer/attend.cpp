#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include <cmath>
#include <tuple>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

using reel::Tensor;

// The loss of many classes, as in a language model.
constexpr std::int64_t examples = 4096, classes = 10000;
constexpr double logits_bytes = 4.0 * examples * classes;

void add_losses(std::vector<PeerEntry>& entries) {
  const char *forward = "cross_entropy (4096, 10000)", *both_ways = "cross_entropy (4096, 10000) both ways";
  entries.push_back({"loss", forward, [=] {
                       Pair x = numbers({examples, classes}, -4, 4), t = indices(examples, classes);
                       return PeerCase{"loss",
                                       forward,
                                       logits_bytes,
                                       "GB/s",
                                       [=] { reel::cross_entropy(x.ours, t.ours); },
                                       [=] { at::cross_entropy_loss(x.theirs, t.theirs); }};
                     }});
  entries.push_back({"loss", both_ways, [=] {
                       Pair x = numbers({examples, classes}, -4, 4), t = indices(examples, classes);
                       x.theirs.set_requires_grad(true);
                       return PeerCase{"loss",
                                       both_ways,
                                       3 * logits_bytes,
                                       "GB/s",
                                       [=] {
                                         reel::Tape tape;
                                         tape.watch(x.ours);
                                         tape.gradient(reel::cross_entropy(x.ours, t.ours), x.ours);
                                       },
                                       [=] {
                                         TorchRecords records;
                                         at::Tensor loss = at::cross_entropy_loss(x.theirs, t.theirs);
                                         torch::autograd::grad({loss}, {x.theirs});
                                       }};
                     }});
}

constexpr std::int64_t batch = 8, heads = 8, length = 256, width = 64;
// Two products of (length, width, length) a head.
constexpr double attention_work = 2.0 * batch * heads * length * length * width;

// Queries, keys and values.
struct Attended {
  Pair q = numbers({batch, heads, length, width}, -1, 1), k = numbers({batch, heads, length, width}, -1, 1),
       v = numbers({batch, heads, length, width}, -1, 1);
};

#if TORCH_VERSION_MAJOR == 1
// 1.13 has no fused attention for the CPU: its composition, without the copies that its leading axes cost there.
at::Tensor torch_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
  if (causal) return std::get<0>(at::_scaled_dot_product_attention(q, k, v, {}, 0, false, true));
  at::Tensor scores = at::bmm(q.view({-1, length, width}) * (1 / std::sqrt(double{width})),
                              k.view({-1, length, width}).transpose(1, 2));
  return at::bmm(at::softmax(scores, -1), v.view({-1, length, width})).view({batch, heads, length, width});
}
#else
at::Tensor torch_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
  return at::scaled_dot_product_attention(q, k, v, {}, 0, causal);
}
#endif

void add_attention(std::vector<PeerEntry>& entries) {
  for (bool causal : {false, true}) {
    std::string name = "attention (8, 8, 256, 64)";
    if (causal) name += ", causal";
    entries.push_back(
        {"attend", name, [=] {
           Attended x;
           return PeerCase{
               "attend",
               name,
               attention_work,
               "GFLOP/s",
               [=] { reel::scaled_dot_product_attention(x.q.ours, x.k.ours, x.v.ours, {.causal = causal}); },
               [=] { torch_attention(x.q.theirs, x.k.theirs, x.v.theirs, causal); }};
         }});
  }
  const char* both_ways = "attention (8, 8, 256, 64) both ways";
  entries.push_back({"attend", both_ways, [=] {
                       Attended x;
                       Tensor d = reel::ones({batch, heads, length, width});
                       at::Tensor their_d = both(d).theirs;
                       for (Pair* one : {&x.q, &x.k, &x.v}) one->theirs.set_requires_grad(true);
                       return PeerCase{"attend",
                                       both_ways,
                                       3.5 * attention_work,
                                       "GFLOP/s",
                                       [=] {
                                         reel::Tape tape;
                                         for (const Tensor* one : {&x.q.ours, &x.k.ours, &x.v.ours}) tape.watch(*one);
                                         Tensor y = reel::scaled_dot_product_attention(x.q.ours, x.k.ours, x.v.ours);
                                         tape.gradient(y, std::vector{x.q.ours, x.k.ours, x.v.ours}, {.seed = d});
                                       },
                                       [=] {
                                         TorchRecords records;
                                         at::Tensor y = torch_attention(x.q.theirs, x.k.theirs, x.v.theirs, false);
                                         torch::autograd::grad({y}, {x.q.theirs, x.k.theirs, x.v.theirs}, {their_d});
                                       }};
                     }});
}

}  // namespace

std::vector<PeerEntry> attend_cases() {
  std::vector<PeerEntry> entries;
  add_losses(entries);
  add_attention(entries);
  return entries;
}

}  // namespace reel_bench
