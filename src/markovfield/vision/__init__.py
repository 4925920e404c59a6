"""Vision: the labels of pixels, and depth from two views, each as a random field on a lattice.

The objects only build a `FactorGraph` and ask it; any method of `markovfield.decode` or `markovfield.marginals` can
answer. Sources: Murphy 19.23 (a Potts prior with local evidence), Murphy 19.6.2.7 with 19.68 to 19.70 (stereo),
Birchfield and Tomasi (1998) for costs that forgive sampling.

Files, in reading order:

* `segmentation`: `ImageSegmentation`, with densities of colours from labelled pixels, or by EM without any;
* `_observations`: those densities, Gaussian or on a grid of cells;
* `_labels`: settings, and labels from a decoding, with a warning where that was not finished;
* `image_features`: features of pixels at several scales and of pairs of neighbours, for many images at once;
* `grid_model`, `grid_crf`, `grid_ssvm`: `GridCRF` and `GridSSVM`, labels of pixels with all weights learned from
  labelled images;
* `stereo`: `StereoMatching`, costs of disparities, smoothness, and the share of wrong disparities.

Building a model is linear in pixels times labels (or disparities); pairs of neighbours share tables, and disparities of
more than 32 states are distance factors, whose messages are linear in the states for most kinds of smoothness. The rest
is the cost of the method that is asked.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
