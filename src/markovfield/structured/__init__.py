"""Structured prediction: models of labels given what is seen, with the manners of scikit-learn."""
