"""What samplers share: draws of directed models, running Markov chains, and when their averages are believed.

Source: Caetano 1 (obtaining samples); effective sample sizes and split R-hat are in ``core/diagnostics.py``.

In reading order:

* ``forward.py``, ``forward_kernel.py``: ancestral and rejection sampling, likelihood weighting;
* ``markov_chains.py``: several chains at once: burn-in, stopping, resuming;
* ``chain_method.py``: `sample` and `marginals` of every method that runs them; ``draws.py``: rows kept, thinned;
* ``starts.py``: first states, scattered and free of hard zeros; ``modes.py``: likely assignments found by climbing;
* ``averages.py``: marginals as chains go, in batches that double in length;
* ``trust.py``: what must hold before an answer says that it has converged;
* ``seen_states.py``: whether assignments came up as often as their scores ask for;
* ``reachability_kernel.py``: where moves of single variables can lead among what hard zeros leave.

Cost: a forward draw is linear in the variables; rejection divides by the probability of the evidence. Markov chains
cost what their moves do; samples take memory for every row kept, averages only for their batches.
"""
