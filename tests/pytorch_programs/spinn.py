"""Learns to evaluate nested differences modulo 3 by shifts and reductions: SPINN with a cell of its own."""

import random
import sys

import torch
from torch import nn
from torch.nn import functional

SIZE, TRACKING = 32, 16


class Tree:
    """A random tree of at most that depth: its words, and of each node the transition that makes it and its value."""

    def __init__(self, depth):
        self.words, self.transitions, self.values = [], [], []
        self.grow(depth)

    def grow(self, depth):
        is_word = depth == 0 or random.randrange(4) == 0
        if is_word:
            value = random.randrange(3)
            self.words.append(value)
        else:
            left = self.grow(depth - 1)
            value = (left - self.grow(depth - 1)) % 3
        self.transitions.append(not is_word)
        self.values.append(value)
        return value


class Cell(nn.Module):
    """The state of a node, given those of its children and the tracker's."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Linear(SIZE + TRACKING, SIZE)
        self.hidden = nn.Linear(3 * SIZE, 2 * SIZE)
        self.output = nn.Linear(2 * SIZE, SIZE)

    def forward(self, left, right, tracking):
        product = self.factor(torch.cat([left, tracking], 1)) * right
        return torch.tanh(self.output(functional.relu(self.hidden(torch.cat([left, right, product], 1)))))


class SPINN(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(3, SIZE)
        self.tracker = nn.LSTMCell(3 * SIZE, TRACKING)
        self.cell = Cell()
        self.output = nn.Linear(SIZE, 3)

    def forward(self, tree):
        """Logits of the value of each node, in the order of the transitions that make them."""
        none = torch.zeros(1, SIZE)
        buffer = [none, *self.words(torch.tensor(tree.words).flip(0)).split(1)]
        stack, nodes = [none, none], []
        state = torch.zeros(1, TRACKING), torch.zeros(1, TRACKING)
        for reduces in tree.transitions:
            top, second = stack[-1], stack[-2]
            state = self.tracker(torch.cat([buffer[-1], top, second], 1), state)
            if reduces:
                del stack[-2:]
                stack.append(self.cell(second, top, state[0]))
            else:
                stack.append(buffer.pop())
            nodes.append(stack[-1])
        return self.output(torch.cat(nodes))


def main():
    torch.manual_seed(1)
    random.seed(1)
    model = SPINN()
    adam = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(120):
        trees = [Tree(3) for _ in range(16)]
        losses = [functional.cross_entropy(model(tree), torch.tensor(tree.values)) for tree in trees]
        loss = torch.stack(losses).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    right = 0
    for tree in [Tree(4) for _ in range(200)]:
        right += model(tree)[-1].argmax().item() == tree.values[-1]
    print(f"{right} of 200 deeper trees are evaluated correctly; 160 are required")
    return right < 160


if __name__ == "__main__":
    sys.exit(main())
