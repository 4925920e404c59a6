"""Questions beyond the verbs: queries, information, sensitivity, diverse and augmented decoding, semirings."""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
