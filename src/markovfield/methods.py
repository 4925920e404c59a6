"""Algorithms with their settings: one frozen class for each registered method, made from the registry."""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
