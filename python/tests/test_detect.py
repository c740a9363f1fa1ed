"""Objects on photos, found by a network of Darknet that is written here."""

import struct

import numpy as np
import pytest

import bitcnn

CONFIG = """[net]
height=8
width=8
channels=1
[maxpool]
size=2
stride=2
[convolutional]
filters=7
size=1
stride=1
activation=linear
[yolo]
classes=2
num=1
anchors=2,2
"""


@pytest.fixture
def spots(tmp_path):
    """The file of a detector of light squares of 2x2 pixels, at even places of grey photos of 8x8."""
    file = tmp_path / "spots.cfg"
    file.write_text(CONFIG)
    bias = [0, 0, 0, 0, -10, -10, 20]  # x, y, width, height, objectness, two classes
    weights = [0, 0, 0, 0, 20, 0, 0]
    (tmp_path / "spots.weights").write_bytes(struct.pack("<3iQ14f", 0, 2, 0, 0, *bias, *weights))
    return file


def photo(*places, size=8):
    image = np.zeros((8, 8), np.uint8)
    for x, y, level in places:
        image[y : y + 2, x : x + 2] = level
    return np.kron(image, np.ones((size // 8, size // 8), np.uint8))


def test_detect(spots):
    with bitcnn.load(spots, device="cpu") as model:
        first, second = model.detect(photo((6, 0, 255), (2, 4, 190)))
        assert (first.label, first.index) == ("1", 1)
        assert first.score == pytest.approx(1 / (1 + np.exp(-10)), abs=1e-6)
        assert (first.left, first.top, first.right, first.bottom) == (6, 0, 8, 2)
        assert (second.left, second.top, second.right, second.bottom) == (2, 4, 4, 6)
        assert 0.9 < second.score < first.score
        assert model.detect(photo((6, 0, 255), (2, 4, 190)), top=1) == [first]
        assert model.detect(photo((6, 0, 255), (2, 4, 190)), threshold=0.999) == [first]
        assert model.detect(photo()) == []
        (large,) = model.detect(photo((2, 4, 255), size=800), threshold=0.3)
        assert (large.left, large.top, large.right, large.bottom) == (200, 400, 400, 600)
        with pytest.raises(ValueError, match="the model is a detector: use detect"):
            model.classify(photo())
        for top in (0, True, 1.5):
            with pytest.raises(ValueError, match="want a whole number from 1 to"):
                model.detect(photo(), top=top)
        with pytest.raises(ValueError, match="a threshold of 2"):
            model.detect(photo(), threshold=2)
        with pytest.raises(ValueError, match="three whole numbers"):
            model.detect(photo(), background=(1, 2))
        with pytest.raises(TypeError, match="float is not a photo"):
            model.detect(1.5)
        (spots.parent / "broken.png").write_text("no image")
        with pytest.raises(OSError, match=r"broken\.png: unsupported image format"):
            model.detect(spots.parent / "broken.png")


def test_labels_and_other_models(spots, tmp_path):
    with bitcnn.load(spots, labels=["speck", "spot"], device="cpu") as model:
        assert model.detect(photo((6, 0, 255)))[0].label == "spot"
        model.save(tmp_path / "spots.bcnn")
        boxes = model.detect(photo((6, 0, 255)))
    with bitcnn.load(tmp_path / "spots.bcnn", device="cpu") as model:
        assert model.detect(photo((6, 0, 255))) == boxes
    with bitcnn.load("digits", device="cpu") as model, pytest.raises(ValueError, match="does not describe how"):
        model.detect(photo())


def test_the_input_is_what_the_model_says(spots):
    two = photo((6, 0, 255), (2, 4, 102))
    with bitcnn.load(spots, device="cpu") as model:
        seen = model.read_image(two)
        stretched = model.read_image(np.repeat(two, 5, axis=1))  # to its size, and not cropped
        assert seen.shape == stretched.shape == model.inputs[0].shape
    np.testing.assert_array_equal(seen.reshape(8, 8), two.astype(np.float32) * np.float32(1 / 255))
    np.testing.assert_allclose(stretched, seen, atol=0.15)
