"""Learning: parameters of directed models from complete and incomplete data, and their structure.

Sources: Caetano 6 (maximum likelihood, exponential families, EM), Chow and Liu (1968), the PC algorithm of Spirtes and
Glymour; Chen, Wang and Zhou (2014) for the recursion of L-BFGS.

Files, in reading order:

* `data`: columns of any library as one table of state numbers (`markovfield.columns` reads one column);
* `missing`: what data lack, and warnings where that looks like a mistake;
* `fit`, `report`: the verb ``fit``, and what a fitted model says of it;
* `counting`, `counting_kernel`: joint counts of families, many in one pass over the rows;
* `parameters`, `statistics`: rows of the pool that are normalised together, and their expected counts;
* `estimators`, `expectation_maximization`, `linear_gaussian`: counts with or without a prior; EM; least squares;
* `structure`: the verb ``learn_structure`` and its answer;
* `scores`, `local_scores`, `family_scores_kernel`: scores of families, counted together and remembered;
* `hill_climbing`, `climber`, `chow_liu`, `pc`: the methods of ``learn_structure``;
* `quasi_newton`, `history_products_kernel`: L-BFGS and OWL-QN, which sequence models train with.

Counting costs rows times the sizes of the families. A step of EM costs one batched pass of the junction tree over the
distinct incomplete rows. A move of hill climbing scores the families of at most two children anew.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
