"""A learned edit distance as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import whole_number
from markovfield.inference.core.running import Running
from markovfield.sequence.strings.string_edits import StringEdits
from markovfield.structured.form_estimator import FormEstimator
from markovfield.structured.settings import LikelihoodSettings
from markovfield.structures.alignment.choice import AlignmentChoice
from markovfield.structures.alignment.monotone import MonotoneAlignment

__all__ = ["EditModel"]


@dataclass(eq=False, repr=False)
class EditModel(LikelihoodSettings, FormEstimator):
    """A string edit distance that is learned from pairs, whose alignment nobody gives (McCallum et al. 2005).

    A string is a word of a lexicon with letters replaced, added and left out. The score of an alignment is the sum of
    weights of its edits: which letters are linked, which have none, whether a gap begins or goes on, whether a letter
    is one of two like ones; and a weight times the log-frequency of the word. The probability of a word given a string
    is that of all their alignments together, among the candidates that share the most letters with it; training
    minimises ``-log-likelihood + l1 |w|_1 + l2/2 |w|^2``, which is not convex, as alignments are hidden.

    Parameters
    ----------
    lexicon
        Words, or a dict from words to how often they come; None: the outputs of training, each as often as another.
    n_candidates
        Words that a string is compared with.
    l2, l1, objective, solver, batch_size, rng, n_jobs
        As those of `StructuredClassifier`; the objective must be ``"likelihood"``.

    Notes
    -----
    A pair of m and n letters takes m n steps. ``score`` is the share of words that are right; ``form(x)`` has the
    candidates of a string with all their alignments, of which any verb can be asked.

    Examples
    --------
    >>> strings = ["recieve", "beleive", "acheive", "adress", "comit", "tommorow"]
    >>> words = ["receive", "believe", "achieve", "address", "commit", "tomorrow"]
    >>> model = EditModel(l2=0.1).fit(strings, words)
    >>> model.predict(["reciive", "tomorow", "committ"])
    ['receive', 'tomorrow', 'commit']
    >>> model.distance("adress", "address") < model.distance("adress", "achieve")
    True
    >>> model.align("comit", "commit")[-2:]
    [('i', 'i'), ('t', 't')]
    """

    lexicon: Any = None
    _: KW_ONLY
    n_candidates: int = 10
    model_: StringEdits = field(init=False)

    def _model(self) -> StringEdits:
        return StringEdits(self.lexicon, self.n_candidates)

    def pair(self, string: str, word: str) -> MonotoneAlignment:
        """All alignments of a string with any word, with their scores, as a form."""
        check_is_fitted(self, "model_")
        inputs = self.model_.pair(string, word)
        pool = self.model_.encode_inputs(inputs).pool(self.weights_)
        form = self.model_.form(inputs, 0, pool)
        assert isinstance(form, AlignmentChoice)
        return form.alignment(0)

    def distance(self, string: str, word: str) -> float:
        """Minus the log of the sum over all alignments of exp(score).

        The less, the nearer. Of two words, it says by how much one is more probable than the other to be meant by a
        string (their frequencies aside); distances from different strings are not to be compared.
        """
        form = self.pair(string, word)
        return -float(form.family.sums(form.pool, running=Running(self.n_jobs)).log_partition[0])

    def align(self, string: str, word: str) -> list[tuple[str | None, str | None]]:
        """The best alignment: letters of the string and of the word side by side, None where there is no partner."""
        form = self.pair(string, word)
        cells = form.family.maxima(form.pool, running=Running(self.n_jobs)).of(0)
        found: list[tuple[str | None, str | None]] = []
        i = j = 0
        for a, b in [*form.structure(cells), (len(string), len(word))]:
            found += [(letter, None) for letter in string[i:a]]
            found += [(None, letter) for letter in word[j:b]]
            if a < len(string):
                found.append((string[a], word[b]))
            i, j = a + 1, b + 1
        return found

    def suggest(self, X: Any, n: int = 5) -> list[list[tuple[str, float]]]:
        """For each string its ``n`` most probable words, with probabilities among all candidates."""
        inputs, pool = self._scored(X)
        family: Any = inputs.family
        counts = family.sums(pool, counts=True, running=Running(self.n_jobs)).counts
        shares = counts[family.choice_cells]
        many = whole_number(n, "n", 1)
        found = []
        for i, own in enumerate(inputs.given.candidates):
            p = shares[family.choices[i] : family.choices[i + 1]]
            order = np.argsort(-p, kind="stable")[:many]
            found.append([(self.model_.classes[own[k]], float(p[k])) for k in order.tolist()])
        return found

    def predict(self, X: Any, *, decision: str = "words") -> list[Any]:
        """The word that each string means.

        Parameters
        ----------
        X
            A list of strings.
        decision
            ``"words"``: the word that is most probable by all its alignments. ``"map"``: that of the best alignment;
            ``"mbr"``: see `decode`.
        """
        if decision == "words":
            return [best[0][0] for best in self.suggest(X, 1)]
        return super().predict(X, decision=decision)
