"""Types of ``markovfield.time_series``, for type checkers. Made by tools/generate.py."""

from markovfield.time_series.causality import CausalityTest as CausalityTest
from markovfield.time_series.causality import CausalityTests as CausalityTests
from markovfield.time_series.forecasts import Forecast as Forecast
from markovfield.time_series.forecasts import ImpulseResponses as ImpulseResponses
from markovfield.time_series.kalman import FilteredStates as FilteredStates
from markovfield.time_series.kalman import SmoothedStates as SmoothedStates
from markovfield.time_series.order_selection import OrderSelection as OrderSelection
from markovfield.time_series.state_space import LinearStateSpace as LinearStateSpace
from markovfield.time_series.vector_autoregression import VectorAutoregression as VectorAutoregression
