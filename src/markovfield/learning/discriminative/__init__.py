"""Learning by curvature and by decoding: weights that are shared by very many factors, as those of Markov logic are.

Methods of `markovfield.fit` for undirected models. Sources: Lowd and Domingos (2007), Singla and Domingos (2005),
Collins (2002), Huynh and Mooney (2009).

Files in reading order: `expectations` (moments of a model, and how much they vary), `diagonal_newton` (steps scaled by
variances), `truth` (what the data say, auxiliary variables filled in), `voted_perceptron` (the best assignment in place
of expectations), `assignment_hinge` (components of a model as blocks of a structural SVM), `max_margin`.

Cost: an inference, or a decoding, for each step.
"""
