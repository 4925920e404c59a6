"""The command line, ``markovfield``: infer, explain, decode, sample, lattice, query, learn, draw, crf and demo.

Commands read files, call the verbs of the library and show answers as tables or as one JSON object. Nothing is computed
here. Imports come late, so that help and mistakes answer at once.

Files, in reading order:

* `_entry`, `app`: where the command starts; the list of commands, and failures as one sentence and an exit code;
* `networks`, `decoding`, `sampling`, `fitting`, `gaussian`, `logic`: the commands, by subject;
* `crf`, `structured`, `ssvm`, `parse`, `align`: those of conditional models; `exploring`, `warmup`: the explorer, and
  kernels compiled ahead;
* `manual`: an example under every help, and `markovfield help`;
* `_options`, `_reading`, `_stdin`, `_errors`: shared options; evidence, methods and files; failures;
* `_report`, `_crf_report`, `_crf_files`: answers for people and machines; those of ``crf``, and its files;
* `demo`: what the demo runs, and the page that it leaves behind.
"""

from markovfield.cli._entry import main

__all__ = ["main"]
