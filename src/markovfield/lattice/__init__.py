"""Simulations of Ising and Potts models on lattices, with energy and magnetisation as they go, and exact results.

Sources: Murphy 19.17, 19.22; Swendsen and Wang (1987), Wolff (1989); Onsager (1944), Kaufman (1949), Yang (1952).

In reading order:

* ``measurement.py``: energy, specific heat and others with errors, by runs from opposed starts;
* ``simulation.py``: the simulation a user meets, and its record;
* ``lattice_model.py``: a model as the arrays that kernels read;
* ``engines.py``: one engine for each kind of move, layers and threads;
* ``bits.py``, ``bits_kernel.py``: uniform Ising models in two dimensions, 64 spins to a word;
* ``spins_kernel.py``, ``potts_kernel.py``: any couplings and fields, a byte to a site;
* ``clusters_kernel.py``: Swendsen-Wang, Wolff, regions of equal states;
* ``random_kernel.py``: random words in vectors;
* ``averages.py``: means, and functions of means, with errors over several runs;
* ``onsager.py``: exact energies, magnetisation and log Z to hold simulations against.

Cost: a sweep is linear in the sites: more than ten updates a nanosecond in packed bits (on two cores), some tens of
nanoseconds a site for Swendsen-Wang. Results do not depend on the number of threads.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
