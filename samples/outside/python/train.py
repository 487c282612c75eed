"""Trains the C++ model Tagger from Python: the tag of a word is the difference of its number and the one before, modulo 3."""

import reel
import tagger


def sentence():
    words = reel.randint(0, 30, (12,))
    return words, (words - words.roll((1,), (0,))) % 3


def main():
    reel.manual_seed(1)
    model = tagger.Tagger(30, size=32)
    adam = reel.optim.Adam(model.parameters(), learning_rate=0.01)
    for step in range(1, 601):
        words, tags = sentence()
        with reel.Tape() as tape:
            loss = reel.cross_entropy(model(words)[1:], tags[1:])
            tape.backward(loss)
        adam.step()
        adam.zero_grad()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    model.save("tagger.safetensors")


if __name__ == "__main__":
    main()
