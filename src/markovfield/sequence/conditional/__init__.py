"""Conditional models of sequences beyond the linear chain, on the protocol of `markovfield.structured`.

* `tokens`: sentences as flat arrays: attributes of tokens as one sparse matrix, neighbours as pairs;
* `links`: which tokens of a sentence are linked, by their words or by any rule;
* `skip_chain`: a linear chain with links between tokens further apart (Murphy 19.6.2.3; Sutton and McCallum 2004);
* `factorial_chain`: several layers of labels over the same tokens (Murphy 19.6.2.2; Sutton, McCallum and Rohanimanesh
  2007);
* `estimators`: both as scikit-learn estimators.
"""
