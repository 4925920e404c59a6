"""Weighted mini-buckets: upper and lower bounds on log Z, and on the best score, whose tightness is paid in memory.

Source: Liu and Ihler (2011). Where the functions in a variable's bucket would make too large a table they are cut into
mini-buckets, each eliminated by a power sum; Hoelder's inequality makes the result a bound.

In reading order:

* ``mini_bucket.py``: the method, for sums;
* ``plan.py``: elimination orders, how a bucket is cut, and all mini-buckets as flat arrays;
* ``bounds.py``: bounds, tightened by moving potential and weight between mini-buckets;
* ``search.py``: the best score, by bounds at falling temperature;
* ``cutset.py``: lower bounds by fixing some variables, which hard zeros do not spoil;
* ``mini_bucket_kernel.py``: tables, messages and beliefs; ``layout_kernel.py``: strides, and directions that tighten a
  bound.

Cost: time of an iteration and memory are linear in the states of all mini-buckets, each exponential in ``i_bound``;
from the width of the order on, answers are exact.
"""
