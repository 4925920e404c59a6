"""Types of ``markovfield.vision``, for type checkers. Made by tools/generate.py."""

from markovfield.vision.segmentation import ImageSegmentation as ImageSegmentation
from markovfield.vision.stereo import StereoMatching as StereoMatching
from markovfield.vision.stereo import disparity_error as disparity_error
