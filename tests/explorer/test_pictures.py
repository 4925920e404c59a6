"""Segmentation and stereo behind the pages."""

import base64
from contextlib import suppress
from threading import Event

import numpy as np
import pytest

from markovfield.datasets.stereo import random_dots
from markovfield.exceptions import ModelError, StoppedError
from markovfield.explorer.core.stopping import STOP
from markovfield.explorer.works.pictures import paint, paint_grid, picture_of, sample_picture, stereo
from markovfield.vision import GridCRF, ImageSegmentation, StereoMatching


def pixels(text, shape):
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape)


def strokes(shape, **painted):
    found = np.full(shape, 255, np.uint8)
    for name, where in painted.items():
        found[where] = int(name[1:])
    return base64.b64encode(found.tobytes()).decode()


@pytest.fixture(scope="module")
def halves():
    """Dark on the left, bright on the right, and noise."""
    rng = np.random.default_rng(3)
    truth = (np.arange(24) >= 12).astype(int) * np.ones((16, 1), int)
    grey = np.clip(90 + 70 * truth + rng.normal(scale=40, size=truth.shape), 0, 255).astype(np.uint8)
    return grey[:, :, None], truth


def test_neighbours_take_noise_off(halves):
    picture, truth = halves
    found = paint(picture, coupling=1.5)
    labels, alone = (pixels(found[name], truth.shape) for name in ("labels", "alone"))
    assert (labels != truth).sum() < (alone != truth).sum()
    assert found["decoding"]["optimal"] and found["marginals"]["guarantee"] in ("exact", "approximate")
    shares = pixels(found["probability"], truth.shape)
    assert shares.min() >= 100  # the likelier of two classes, near its best labelling
    assert found["colours"][0][0] < found["colours"][1][0]


def test_without_coupling_every_pixel_stands_alone(halves):
    picture, _truth = halves
    found = paint(picture, coupling=0.0)
    assert found["changed"] == 0 and found["labels"] == found["alone"]


def test_painted_pixels_are_evidence(halves):
    picture, truth = halves
    where = np.s_[0:8, 0:3]
    found = paint(picture, strokes(truth.shape, c1=where), coupling=1.5)
    assert (pixels(found["labels"], truth.shape)[where] == 1).all()
    assert found["colours_from"] == "picture" and found["painted"] == 24
    both = paint(picture, strokes(truth.shape, c0=np.s_[:, 0:4], c1=np.s_[:, 20:]), coupling=1.5)
    assert both["colours_from"] == "strokes"
    assert (pixels(both["labels"], truth.shape) != truth).mean() < 0.05


def test_samples():
    for name in ("letters", "landscape"):
        picture = sample_picture(name, noise=0.4)
        assert picture.dtype == np.uint8 and picture.ndim == 3 and np.ptp(picture) > 100
    with pytest.raises(ModelError, match="samples letters and landscape, not 'cat'"):
        sample_picture("cat")


def test_a_picture_is_bytes_of_a_size_that_was_said():
    data = base64.b64encode(bytes(12)).decode()
    assert picture_of(2, 2, 3, data).shape == (2, 2, 3)
    for rows, columns, channels, text, message in [
        (2, 2, 1, data, "a picture must"),
        (2, 2, 3, data[:-4], "a picture must have 12 bytes, got 9"),
        (2, 2, 3, "<svg onload=alert(1)>", "must be base64 of 12 bytes"),
        (2, 2, 3, None, "must be base64"),
        (2, 2, 9, data, "channels of a picture must be an integer from 1 to 3"),
        (1, 2, 3, data, "rows of a picture"),
        (10**9, 10**9, 3, data, "512 rows or columns and 40,000 pixels"),
        (400, 400, 3, data, "40,000 pixels, got 400 x 400"),
        ("2", 2, 3, data, "rows of a picture must be an integer"),
    ]:
        with pytest.raises(ModelError, match=message):
            picture_of(rows, columns, channels, text)


def test_settings_of_paint_are_checked(halves):
    picture, truth = halves
    for settings, message in [
        ({"n_classes": 1}, "classes must be an integer from 2 to 6"),
        ({"coupling": -1}, "coupling must be a number of at least 0"),
        ({"coupling": 1e9}, "coupling must be at most 20"),
        ({"connectivity": 5}, "connectivity"),
        ({"strokes": strokes(truth.shape, c7=np.s_[0, 0])}, "strokes must be classes 0 to 1, or 255 for none, got 7"),
        ({"strokes": "AAAA"}, "strokes must have 384 bytes, got 3"),
    ]:
        with pytest.raises(ModelError, match=message):
            paint(picture, **settings)


def test_stereo_needs_neighbours():
    near, far = stereo(weight=0.0), stereo(weight=0.8)
    # How near the truth comes, which a model of fewer disparities cannot follow.
    assert far["nearest"] == random_dots().max_disparity < far["most"]
    assert near["disparity"] == near["alone"]
    assert far["error"] < 0.05 < near["error"]
    truth = pixels(far["truth"], far["shape"])
    assert set(np.unique(truth)) == {2, 5, 9, 255}
    with pytest.raises(ModelError, match="smoothness must be gaussian"):
        stereo(smoothness="<b>")
    with pytest.raises(ModelError, match="weight must be at most 10"):
        stereo(weight=11)


def test_a_fitted_segmentation_brings_its_densities(halves):
    picture, truth = halves
    labels = np.full(truth.shape, -1)
    labels[:, :3], labels[:, -3:] = 0, 1
    model = ImageSegmentation(coupling=1.5).fit(picture / 255.0, labels)
    found = paint(picture, coupling=1.5, model=model)
    assert found["colours_from"] == "model"
    assert (pixels(found["labels"], truth.shape) == model.predict(picture / 255.0)).all()
    painted = paint(picture, strokes(truth.shape, c1=np.s_[0:2, 0:2]), coupling=1.5, model=model)
    assert painted["colours_from"] == "model" and (pixels(painted["labels"], truth.shape)[0:2, 0:2] == 1).all()
    assert paint(picture, n_classes=3, model=model)["colours_from"] == "picture"
    assert model.coupling == 1.5 and model.n_classes == 2


@pytest.fixture(scope="module")
def crf(halves):
    rng, images, labels = np.random.default_rng(1), [], []
    for columns in (8, 10):
        y = (np.arange(columns) > columns // 2).astype(int) * np.ones((6, 1), int)
        images.append((0.35 + 0.3 * y + rng.normal(scale=0.15, size=y.shape))[:, :, None])
        labels.append(np.where(y == 1, "land", "sea"))
    return GridCRF(edge_features="constant", l2=0.1).fit(images, labels)


def test_a_grid_crf_is_painted_on(crf, halves):
    picture, truth = halves
    image = picture / 255.0
    found = paint_grid(crf, picture)
    names = np.array(crf.classes_)
    assert (names[pixels(found["labels"], truth.shape)] == crf.predict([image])[0]).all()
    assert found["marginals"]["guarantee"] == crf.marginals([image]).guarantee
    where = np.s_[2:6, 0:4]
    painted = paint_grid(crf, picture, strokes(truth.shape, c0=where))
    assert (pixels(painted["labels"], truth.shape)[where] == 0).all() and painted["painted"] == 16
    loose = paint_grid(crf, picture, strength=0.0)
    assert loose["changed"] == 0 and loose["labels"] == found["alone"]
    assert (crf.coef_["edges"] != 0).any()
    for settings, message in [
        ({"strength": 9}, "strength must be at most 5"),
        ({"scale": "<b>"}, "scale must be unit or bytes, got '<b>'"),
        ({"strokes": strokes(truth.shape, c2=np.s_[0, 0])}, "strokes must be classes 0 to 1"),
    ]:
        with pytest.raises(ModelError, match=message):
            paint_grid(crf, picture, **settings)
    with pytest.raises(ModelError, match="trained on pictures of 1 channels, this one has 3"):
        paint_grid(crf, np.repeat(picture, 3, axis=2))


def test_stereo_of_own_views():
    scene = np.random.default_rng(0).integers(0, 256, (8, 24), np.uint8)[:, :, None]
    views = scene, np.roll(scene, -3, axis=1)
    model = StereoMatching(4, data="squared")
    found = stereo(smoothness="potts", model=model, views=views)
    mine = StereoMatching(4, smoothness="potts", data="squared", weight=0.8, truncation=2.0)
    assert (pixels(found["disparity"], (8, 24)) == mine.predict(scene / 255.0, views[1] / 255.0)).all()
    assert found["most"] == 4 and "truth" not in found and model.smoothness == "truncated_quadratic"
    with pytest.raises(ModelError, match="both views must have the same size"):
        stereo(views=(scene, scene[:, :5]))


def test_strokes_do_not_fit_again(halves, monkeypatch):
    picture, truth = halves
    settings = {"coupling": 1.25, "n_classes": 2}
    before = paint(picture, **settings)
    fits = []
    monkeypatch.setattr(ImageSegmentation, "_fit_alone", lambda *given: fits.append(given))
    again = paint(picture, **settings)
    assert not fits and again["labels"] == before["labels"] and again["settled"] == before["settled"]
    painted = paint(picture, strokes(truth.shape, c1=np.s_[0:2, 0:2]), **settings)
    assert not fits and (pixels(painted["labels"], truth.shape)[0:2, 0:2] == 1).all()


def test_a_fit_that_nobody_waits_for_is_not_kept(halves, monkeypatch):
    stop, fits, fit = Event(), [], ImageSegmentation.fit
    monkeypatch.setattr(ImageSegmentation, "fit", lambda *given, **more: fits.append(given) or fit(*given, **more))
    stop.set()
    token = STOP.set(stop)
    try:
        with suppress(StoppedError):  # small pictures are done before anybody asks
            paint(halves[0], coupling=1.125)
    finally:
        STOP.reset(token)
    for _ in range(2):
        assert paint(halves[0], coupling=1.125)["decoding"]["optimal"]
    assert len(fits) == 2
