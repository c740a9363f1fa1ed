"""Photos as networks read them."""

import io
from pathlib import Path

import numpy as np
import pytest

import bitcnn

SAMPLE = Path(bitcnn.__file__).parent / "samples" / "digit-7.png"


def gif():
    """A picture of a black pixel and a white one."""
    return b"GIF89a\2\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\2\0\1\0\0\2\2D\n\0;"


def test_pixels_of_files_and_of_memory():
    pixels = bitcnn.read_image(gif(), 1, 2)
    assert pixels.dtype == np.uint8
    assert pixels.tolist() == [[[0, 0, 0], [255, 255, 255]]]
    assert bitcnn.read_image(bytearray(gif()), 1, 2, 1).tolist() == [[[0], [255]]]
    assert bitcnn.read_image(memoryview(gif()), 2, 2, 1).shape == (2, 2, 1)
    file = bitcnn.read_image(str(SAMPLE), 28, 28, 1)
    assert np.array_equal(file, bitcnn.read_image(SAMPLE.read_bytes(), 28, 28, 1))
    assert np.array_equal(file, bitcnn.read_image(SAMPLE, 28, 28, 1))


def test_a_photo_is_cropped_as_the_command_does():
    image = pytest.importorskip("PIL.Image")
    ramp = np.arange(40 * 90 * 3, dtype=np.uint32).reshape(40, 90, 3) // 43
    file = io.BytesIO()
    image.fromarray(ramp.astype(np.uint8)).save(file, "PNG")
    # The middle 40 x 40 of 40 x 90, halved.
    want = ramp[:, 25:65].reshape(20, 2, 20, 2, 3).mean((1, 3))
    got = bitcnn.read_image(file.getvalue(), 20, 20).astype(float)
    inside = np.abs(got - want)[1:-1, 1:-1]
    assert inside.max() < 3
    # The middle half of the shorter side.
    whole = bitcnn.read_image(file.getvalue(), 20, 20, resize=40)
    assert np.array_equal(whole, ramp[10:30, 35:55].astype(np.uint8))


def test_a_model_reads_photos_of_its_size():
    with bitcnn.load("digits") as model:
        x = model.read_image(SAMPLE)
        assert x.shape == model.inputs[0].shape
        assert model.labels[int(model(x).argmax())] == "7"
    with bitcnn.load("vehiclenet") as model:
        assert model.read_image(SAMPLE).shape == model.inputs[0].shape


@pytest.mark.parametrize(
    ("source", "sides", "resize", "error", "about"),
    [
        (b"no image", (1, 2, 3), 0, OSError, "no image of a known format"),
        (b"", (1, 2, 3), 0, OSError, "no image of a known format"),
        (gif()[:20], (1, 2, 3), 0, OSError, "broken image"),
        ("no-such-file.jpg", (1, 2, 3), 0, FileNotFoundError, "no-such-file.jpg"),
        (__file__, (1, 2, 3), 0, OSError, "test_image.py: no image"),
        (gif(), (1, 2, 2), 0, ValueError, "not an image"),
        (gif(), (0, 2, 3), 0, ValueError, "0×2×3"),
        (gif(), (1, 2, 3), -1, ValueError, "resized to -1"),
        (gif(), (1.0, 2, 3), 0, ValueError, "whole numbers"),
        (gif(), (1 << 20, 1 << 20, 3), 0, ValueError, "too large"),
    ],
)
def test_what_is_wrong_is_said(source, sides, resize, error, about):
    with pytest.raises(error, match=about):
        bitcnn.read_image(source, *sides, resize=resize)
