"""A portfolio of decoders against the clock: the best assignment and the best bound of several methods.

Methods take turns, in one thread for assignments and one for bounds; each starts from the best so far of all, and the
next turn goes to whoever gained most in a second of late. Pictures are left to moves and messages together
(`FusionMoves`), which end by themselves.

In reading order:

* ``portfolio.py``: the race, its lanes, who is asked next, and the answer;
* ``members.py``: the methods that take part, each as something that works for a turn and goes on where it stopped;
* ``interrupts.py``: Ctrl-C, which ends all of them.

Cost: as much time as it is given; it ends early where the answer is proven. Memory is that of its members.
"""
