"""Types of ``markovfield.lattice``, for type checkers. Made by tools/generate.py."""

from markovfield.lattice.averages import LatticeAverage as LatticeAverage
from markovfield.lattice.averages import lattice_average as lattice_average
from markovfield.lattice.measurement import LatticeMeasurement as LatticeMeasurement
from markovfield.lattice.measurement import measure as measure
from markovfield.lattice.onsager import critical_coupling as critical_coupling
from markovfield.lattice.onsager import ising_energy as ising_energy
from markovfield.lattice.onsager import ising_log_partition_density as ising_log_partition_density
from markovfield.lattice.onsager import ising_magnetisation as ising_magnetisation
from markovfield.lattice.onsager import torus_energy as torus_energy
from markovfield.lattice.onsager import torus_log_partition as torus_log_partition
from markovfield.lattice.onsager import torus_specific_heat as torus_specific_heat
from markovfield.lattice.simulation import LatticeRecord as LatticeRecord
from markovfield.lattice.simulation import LatticeSimulation as LatticeSimulation
