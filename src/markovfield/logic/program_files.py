"""Programs with learned weights as text and as archives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from markovfield.exceptions import FormatError
from markovfield.logic.language.program import Program, Rule
from markovfield.logic.language.reader import read_program
from markovfield.logic.language.syntax import Constant, substitute

__all__ = ["described", "restored", "spelled_out"]

WeightKey = tuple[int, tuple[str, ...]]


def spelled_out(program: Program, learned: Mapping[WeightKey, float]) -> Program:
    """The same program with weights for single constants as formulas of their own, as text can hold them.

    Such a formula stands beside the one with ``+`` variables where that has a weight of its own, and then its weight is
    what the constants add to it; otherwise in its place. Weights of zero need no formula.
    """
    by_rule: dict[int, list[tuple[tuple[str, ...], float]]] = {}
    for (i, values), weight in learned.items():
        by_rule.setdefault(i, []).append((values, weight))
    rules: list[Rule] = []
    for i, rule in enumerate(program.rules):
        found = by_rule.get(i, [])
        default = rule.weight or 0.0
        if not found or default:
            rules.append(rule)
        for values, weight in found:
            if weight != default:
                given = {name: Constant(value) for name, value in zip(rule.each, values, strict=True)}
                formula = substitute(rule.formula, dict(given))
                rules.append(replace(rule, formula=formula, weight=weight - default, each=()))
    return replace(program, rules=rules)


def described(program: Program, learned: Mapping[WeightKey, float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A program for an archive: its text, and the weights for single constants as vectors."""
    constants = json.dumps([[i, list(values)] for i, values in learned])
    texts = {"class": "MarkovLogic", "text": str(program), "constants": constants}
    return texts, {"weights": np.array(list(learned.values()), np.float64)}


def restored(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> tuple[Program, dict[WeightKey, float]]:
    """What `described` described."""
    text, constants, weights = about.get("text"), about.get("constants"), arrays.get("weights")
    if not isinstance(text, str) or not isinstance(constants, str) or weights is None:
        raise FormatError("it holds no Markov logic program")
    if any(line.lstrip().startswith("#include") for line in text.splitlines()):
        # A saved program is one text; an archive has no business with other files.
        raise FormatError("its program includes other files")
    program = read_program(text)
    keys = json.loads(constants)
    if not isinstance(keys, list) or len(keys) != len(weights) or not np.isfinite(weights).all():
        raise FormatError("its weights are not those of its program")
    learned: dict[WeightKey, float] = {}
    for key, weight in zip(keys, weights.tolist(), strict=True):
        learned[_key(program, key)] = weight
    return program, learned


def _key(program: Program, key: Any) -> WeightKey:
    """A rule and constants for its ``+`` variables, checked."""
    if isinstance(key, list) and len(key) == 2 and type(key[0]) is int and 0 <= key[0] < len(program.rules):
        rule, values = key
        fits = isinstance(values, list) and all(type(value) is str for value in values)
        if fits and len(values) == len(program.rules[rule].each) > 0:
            return rule, tuple(values)
    raise FormatError("its weights are not those of its program")
