"""
Feature induction: how words are spelled
========================================

A random field over words begins with nothing: every string of printable characters is as likely as any other of its
length. Then it grows. Of all patterns that it could look for, it takes the one whose weight alone would raise the
likelihood most, fits all weights again, and looks for the next (Murphy 19.5.6; Della Pietra, Della Pietra and Lafferty
1997). The words are those of the text below, as often as they come.
"""

import matplotlib.pyplot as plt

import markovfield as mf

TEXT = """
The keeper of the lighthouse was counting the ships again. There were thirteen in the morning, and by the evening
there were nine; the others had gone sailing past the point without sending a signal, which was not the custom here.
"They are hurrying," said the keeper. "Something is coming." He had been watching the weather for 27 years, and he was
seldom wrong. In 1931 he had warned the harbour of a storm that nobody else was expecting, and the ships that were
resting there had stayed. The captains remembered this. Mr. Hale, who was the oldest of them, used to say that the
keeper was reading the clouds as others were reading the newspaper, beginning with the last page.

Now the clouds were gathering in the west, one behind the other, and the wind was turning. The keeper went down the 118
steps, which he was counting too, and walked along the wall to the harbour. The fishermen were mending their nets. Their
children were running between the boxes, shouting, throwing stones at the floating bottles. "Take the boats in," he said
to the men. "All of them, and the small ones first." They were laughing at first; then they were looking at the sky,
and then nobody was laughing. By 6 o'clock the last of the boats was lying on the stones, and the women were closing
the shutters. The rain was starting. It was a thin rain, hardly more than a drizzle, and for an hour it seemed that the
keeper had been wrong after all. He was standing at the window of the inn, holding his cup, saying nothing.

Then the storm was there. It was throwing the waves over the wall and the tiles from the roofs; it was howling in the
chimneys, tearing the signs from the shops, bending the trees until they were breaking. The children were hiding in
the kitchen. Nobody was sleeping that night. In the morning the harbour was filled with seaweed and broken planks, but
the boats were lying where the men had left them, and not one was missing. Of the ships that had gone sailing past the
point, 3 were never seen again; the others were found drifting in the north, without their masts. Mr. Hale went up to
the lighthouse with a bottle of his best wine. "Thirteen in the morning, nine in the evening," he said. "You are
counting well." The keeper was already looking at the clouds. "Ten," he answered. "One is returning."
"""
words = TEXT.split()
printable = "".join(map(chr, range(32, 127)))

# %%
# The first pattern is a lower-case letter at any place (19.52): in this text such a letter is ``exp(weight)`` times as
# likely as another character. Patterns are written as regular expressions; ``<`` and ``>`` are the beginning and the
# end of a word.

grown = mf.learning.FeatureInduction(60, alphabet=printable, l2=0.5, n_samples=5000).fit(words, rng=0)
print(grown)

# %%
# Words drawn from the field as it grew. They are drawn exactly, place by place, not by a Markov chain.

for n in (0, 1, 2, 10, 60):
    print(f"{n:>3} features: {', '.join(grown.stage(n).sample(14, rng=1))}")

# %%
# What each pattern added. The first ones know classes of characters and single letters, later ones parts of words.

figure, left = plt.subplots(figsize=(8, 3.5))
left.plot(range(len(grown.log_likelihoods_)), grown.log_likelihoods_)
left.set(xlabel="features", ylabel="log-likelihood per word")
for n, feature in enumerate(grown.features_[:6], 1):
    at = (10, feature.log_likelihood - 2.4 + 0.5 * (n - 3.5))
    left.annotate(feature.pattern, (n, feature.log_likelihood), at, arrowprops={"arrowstyle": "-", "color": "0.7"})
figure.tight_layout()

# %%
# The section's model of two features, single lower-case letters and adjacent ones (19.54), is a field to start from.
# The second weight says that lower case comes in runs.

pair = mf.learning.FeatureInduction(2, alphabet=printable, start=("[a-z]", "[a-z][a-z]")).fit(words, rng=0)
for feature in pair.features_:
    print(f"{feature.pattern:<12} {feature.weight:.3f}")

# %%
# A field gives every word its probability, exactly: how plausible are these as English?

for word in ("counting", "thering", "qxzvv", "ZZZZZ"):
    print(f"{word:<10} {grown.log_likelihood([word])[0]:.2f}")
plt.show()
