"""What pages compute, without a server: models and settings in, what JSON can hold out.

* `live_lattice`: an Ising or Potts lattice that moves on, with Onsager's curves;
* `pictures`: classes of pixels with painted evidence, depth from two views;
* `tagger`, `parses`: labels of a text; trees, arcs and alignments of sentences; `code`: the same asked in Python;
* `logic`: the ground network of a Markov logic program, and what pushes an atom;
* `training_log`: what a ``fit`` tells while it runs.
"""
