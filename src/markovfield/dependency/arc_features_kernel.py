"""Features of arcs: values of fields in mixed radix, looked up in a table of the numbers that have a feature.

A sentence takes ``length + 3`` places: one outside, the root, its words, one outside. Fields are numbered as in
`markovfield.dependency.arc_features`: words, tags and prefixes of head and modifier, tags of their neighbours, distance
with direction, direction, and a tag between. A template is a row of fields, -1 after the last; its number has the
template as last digit. A field of value -1 (a prefix that is not known) leaves out the templates that name it.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["arc_features", "arc_keys", "count_keys", "fill_table"]

# Fields, in the order of arc_features.FIELDS.
BETWEEN = 12
N_FIELDS = 13


@kernel
def _fill(values, words, tags, prefixes, at, h, m, buckets):
    """The fields of the arc from place h to place m of the sentence whose root is at ``at``, but the tag between."""
    values[0] = words[at + h]
    values[1] = tags[at + h]
    values[2] = prefixes[at + h]
    values[3] = words[at + m]
    values[4] = tags[at + m]
    values[5] = prefixes[at + m]
    values[6] = tags[at + h - 1]
    values[7] = tags[at + h + 1]
    values[8] = tags[at + m - 1]
    values[9] = tags[at + m + 1]
    distance = abs(h - m)
    bucket = 0
    while bucket < len(buckets) and distance >= buckets[bucket]:
        bucket += 1
    right = 1 if h < m else 0
    values[10] = 2 * bucket + right
    values[11] = right


@kernel
def _number(templates, t, values, sizes):
    """The number of a template, or -1 where a field has no value."""
    found = 0
    for x in range(templates.shape[1]):
        field = templates[t, x]
        if field < 0:
            break
        if values[field] < 0:
            return -1
        found = found * sizes[field] + values[field]
    return found * templates.shape[0] + t


@kernel
def _between(tags, at, h, m, stamps, stamp, found):
    """The tags between two places, each once; ``stamps[tag]`` says when a tag was last met."""
    n = 0
    for k in range(min(h, m) + 1, max(h, m)):
        tag = tags[at + k]
        if stamps[tag] != stamp:
            stamps[tag] = stamp
            found[n] = tag
            n += 1
    return n


@kernel
def _slot(key, mask):
    """Where a number is looked for in a table of a power of two; products stay below 2^63."""
    folded = (key ^ (key >> 31)) & 0x7FFFFFFF
    return ((folded * 0x9E3779B1) >> 28) & mask


@kernel
def _look_up(key, table, places):
    """The feature of a number, or -1."""
    mask = len(table) - 1
    slot = _slot(key, mask)
    while table[slot] >= 0:
        if table[slot] == key:
            return places[slot]
        slot = (slot + 1) & mask
    return -1


@kernel
def arc_features(
    lengths, words, tags, prefixes, buckets, templates, sizes, named, parents, table, places, chosen, rows, features
):
    """Features of all cells ``[length + 1, length + 1]`` of all sentences; those of unchosen cells are left out.

    ``named[t]`` says whether a template names a tag between; ``parents[t]`` is a template that comes before and says
    less, or -1: where that has no feature, neither has this one. Answers with how many there are.
    """
    values = np.zeros(N_FIELDS, np.int64)
    there = np.zeros(len(templates), np.bool_)
    stamps = np.full(sizes[BETWEEN], -1, np.int64)
    inside = np.empty(sizes[BETWEEN], np.int64)
    cell = 0
    n_found = 0
    at = 1
    rows[0] = 0
    for s in range(len(lengths)):
        n = lengths[s]
        for h in range(n + 1):
            for m in range(n + 1):
                if m > 0 and m != h and chosen[cell]:
                    _fill(values, words, tags, prefixes, at, h, m, buckets)
                    n_inside = _between(tags, at, h, m, stamps, cell, inside)
                    for t in range(len(templates)):
                        there[t] = False
                        if parents[t] >= 0 and not there[parents[t]]:
                            continue
                        for x in range(n_inside if named[t] else 1):
                            if named[t]:
                                values[BETWEEN] = inside[x]
                            key = _number(templates, t, values, sizes)
                            feature = _look_up(key, table, places) if key >= 0 else -1
                            if feature >= 0:
                                there[t] = True
                                features[n_found] = feature
                                n_found += 1
                cell += 1
                rows[cell] = n_found
        at += n + 3
    return n_found


@kernel
def arc_keys(lengths, words, tags, prefixes, buckets, templates, sizes, named, wanted, chosen, keys):
    """Numbers of the wanted templates of the chosen cells; answers with how many there are."""
    values = np.zeros(N_FIELDS, np.int64)
    stamps = np.full(sizes[BETWEEN], -1, np.int64)
    inside = np.empty(sizes[BETWEEN], np.int64)
    cell = 0
    n_found = 0
    at = 1
    for s in range(len(lengths)):
        n = lengths[s]
        for h in range(n + 1):
            for m in range(n + 1):
                if m > 0 and m != h and chosen[cell]:
                    _fill(values, words, tags, prefixes, at, h, m, buckets)
                    n_inside = _between(tags, at, h, m, stamps, cell, inside)
                    for t in range(len(templates)):
                        if wanted[t]:
                            for x in range(n_inside if named[t] else 1):
                                if named[t]:
                                    values[BETWEEN] = inside[x]
                                key = _number(templates, t, values, sizes)
                                if key >= 0:
                                    keys[n_found] = key
                                    n_found += 1
                cell += 1
        at += n + 3
    return n_found


@kernel
def count_keys(keys, table, counts):
    """Count numbers in a table that has room for them; answers with how many are new."""
    n_new = 0
    mask = len(table) - 1
    for x in range(len(keys)):
        key = keys[x]
        slot = _slot(key, mask)
        while table[slot] >= 0 and table[slot] != key:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = key
            n_new += 1
        counts[slot] += 1
    return n_new


@kernel
def fill_table(keys, table, places):
    """Put numbers, all different, with their positions into an empty table: a power of two that leaves room."""
    mask = len(table) - 1
    for x in range(len(keys)):
        slot = _slot(keys[x], mask)
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = keys[x]
        places[slot] = x
