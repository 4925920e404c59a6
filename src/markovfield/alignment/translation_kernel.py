"""Words that stand opposite each other: which pairs there are, where each is, and their probabilities in a sentence.

Invariant: the pairs of a source word are one run of ``columns``, in ascending order of target words. Cells of a pair of
sentences lie target word by target word, source words within: entry ``j * n_sources + i``. A cell is the number of a
pair of words, or -1 where no training sentence had it.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["count_pairs", "fill_pairs", "find_pairs", "gather", "normalise_rows"]


@kernel
def count_pairs(pairs, order, starts, sentence_of, stamps):
    """How many distinct pairs of words there are. ``order``: source tokens by word; ``stamps``: -1 by target word."""
    _, _, target_offsets, targets, _, _ = pairs
    total = 0
    for word in range(len(starts) - 1):
        for k in range(starts[word], starts[word + 1]):
            s = sentence_of[order[k]]
            for t in range(target_offsets[s], target_offsets[s + 1]):
                if stamps[targets[t]] != word:
                    stamps[targets[t]] = word
                    total += 1
    return total


@kernel
def fill_pairs(pairs, order, starts, sentence_of, stamps, slots, row_starts, columns, met, together):
    """Number the pairs and write the cells; ``together`` counts sentence pairs that have both words.

    ``stamps`` and ``met`` start at -1; ``slots`` is room by target word.
    """
    source_offsets, _, target_offsets, targets, cell_offsets, cells = pairs
    total = 0
    for word in range(len(starts) - 1):
        begin = total
        row_starts[word] = begin
        for k in range(starts[word], starts[word + 1]):
            s = sentence_of[order[k]]
            for t in range(target_offsets[s], target_offsets[s + 1]):
                if stamps[targets[t]] != word:
                    stamps[targets[t]] = word
                    columns[total] = targets[t]
                    total += 1
        columns[begin:total].sort()
        for k in range(begin, total):
            slots[columns[k]] = k
        for k in range(starts[word], starts[word + 1]):
            s = sentence_of[order[k]]
            n = source_offsets[s + 1] - source_offsets[s]
            at = cell_offsets[s] + order[k] - source_offsets[s]
            for t in range(target_offsets[s], target_offsets[s + 1]):
                slot = slots[targets[t]]
                cells[at] = slot
                at += n
                if met[slot] != s:
                    met[slot] = s
                    together[slot] += 1
    row_starts[len(starts) - 1] = total


@kernel
def find_pairs(pairs, row_starts, columns):
    """Write the cells of other sentences: the numbers of pairs that training had."""
    source_offsets, sources, target_offsets, targets, cell_offsets, cells = pairs
    for s in range(len(cell_offsets) - 1):
        n = source_offsets[s + 1] - source_offsets[s]
        for i in range(n):
            word = sources[source_offsets[s] + i]
            at = cell_offsets[s] + i
            for t in range(target_offsets[s], target_offsets[s + 1]):
                cells[at] = -1
                if word >= 0 and targets[t] >= 0:
                    low, high = row_starts[word], row_starts[word + 1]
                    while low < high:
                        middle = (low + high) // 2
                        if columns[middle] < targets[t]:
                            low = middle + 1
                        else:
                            high = middle
                    if low < row_starts[word + 1] and columns[low] == targets[t]:
                        cells[at] = low
                at += n


@kernel
def gather(pairs, table, s, block, nulls):
    """Probabilities of the target words of a sentence: ``block[j, i]`` after a source word, ``nulls[j]`` after none.

    Answers whether some target word has none at all; it is then as likely after all words.
    """
    source_offsets, sources, target_offsets, targets, cell_offsets, cells = pairs
    values, rest, null_values = table
    first, n = source_offsets[s], source_offsets[s + 1] - source_offsets[s]
    at, impossible = cell_offsets[s], False
    for j in range(target_offsets[s + 1] - target_offsets[s]):
        target = targets[target_offsets[s] + j]
        nulls[j] = null_values[target if target >= 0 else len(null_values) - 1]
        total = nulls[j]
        for i in range(n):
            cell = cells[at + i]
            if cell >= 0:
                block[j, i] = values[cell]
            else:
                word = sources[first + i]
                block[j, i] = rest[word if word >= 0 else len(rest) - 1]
            total += block[j, i]
        at += n
        if not total > 0.0:
            impossible = True
            nulls[j] = 1.0
            block[j, :n] = 1.0
    return impossible


@kernel
def normalise_rows(row_starts, counts, smoothing, n_targets, values, rest):
    """The M step: ``(count + smoothing) / (their sum + smoothing * n_targets)`` by source word.

    ``rest`` becomes the probability of a target word that never stood opposite. Rows without counts stay as they are.
    """
    for word in range(len(row_starts) - 1):
        begin, end = row_starts[word], row_starts[word + 1]
        total = smoothing * n_targets
        for k in range(begin, end):
            total += counts[k]
        if not total > 0.0:
            continue
        for k in range(begin, end):
            values[k] = (counts[k] + smoothing) / total
        rest[word] = smoothing / total
