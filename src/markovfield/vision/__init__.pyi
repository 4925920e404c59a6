"""Types of ``markovfield.vision``, for type checkers. Made by tools/generate.py."""

from markovfield.vision.grid_crf import GridCRF as GridCRF
from markovfield.vision.grid_model import GridModel as GridModel
from markovfield.vision.grid_ssvm import GridSSVM as GridSSVM
from markovfield.vision.image_features import GridEdges as GridEdges
from markovfield.vision.image_features import Images as Images
from markovfield.vision.image_features import edge_features as edge_features
from markovfield.vision.image_features import grid_edges as grid_edges
from markovfield.vision.image_features import node_feature_names as node_feature_names
from markovfield.vision.image_features import node_features as node_features
from markovfield.vision.image_features import one_hot_colours as one_hot_colours
from markovfield.vision.image_features import stack_images as stack_images
from markovfield.vision.segmentation import ImageSegmentation as ImageSegmentation
from markovfield.vision.stereo import StereoMatching as StereoMatching
from markovfield.vision.stereo import disparity_error as disparity_error
