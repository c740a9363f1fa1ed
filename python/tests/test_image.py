"""Photos as networks read them."""

import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import bitcnn
from bitcnn._image import escape, read_file

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


def clear_gif():
    """A transparent pixel."""
    return b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\4\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"


def test_what_is_transparent_is_laid_over_the_background():
    assert bitcnn.read_image(clear_gif(), 1, 1).tolist() == [[[0, 0, 0]]]
    assert bitcnn.read_image(clear_gif(), 1, 1, background=(250, 2, np.int64(3))).tolist() == [[[250, 2, 3]]]
    assert bitcnn.read_image(clear_gif(), 1, 1, 1, background=[255] * 3).tolist() == [[[255]]]
    with bitcnn.load("vehiclenet") as model:
        assert (model.read_image(clear_gif(), background=(9, 9, 9)) == 9).all()
    for wrong in ((1, 2), (1, 2, 3, 4), (1, 2, 256), (1, 2, -1), (1, 2, 3.0), (1, 2, True)):
        with pytest.raises(ValueError, match="three whole numbers from 0 to 255"):
            bitcnn.read_image(clear_gif(), 1, 1, background=wrong)


def test_a_webp_is_what_pillow_sees():
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(1)
    pixels = np.kron(rng.integers(0, 255, (5, 6, 3)), np.ones((7, 5, 1))).astype(np.uint8)
    for options in ({"quality": 70}, {"lossless": True}):
        file = io.BytesIO()
        image.fromarray(pixels).save(file, "WEBP", **options)
        want = np.asarray(image.open(file).convert("RGB"))
        assert np.array_equal(bitcnn.read_image(file.getvalue(), 35, 30), want)


def test_names_are_escaped():
    assert escape("größe 漢字.png") == "größe 漢字.png"
    assert escape("a\nb\x1b[31m\u202e\udcff.png") == "a\\nb\\x1b[31m\\u202e\\xff.png"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "device.png").symlink_to("/dev/zero")
    (tmp_path / "link to a pipe.png").symlink_to(tmp_path / "pipe.png")
    for name in ("pipe.png", "device.png", "link to a pipe.png"):
        with pytest.raises(OSError, match=f"not a regular file.*{name}"):
            bitcnn.read_image(tmp_path / name, 1, 2)
    with pytest.raises(IsADirectoryError):
        bitcnn.read_image(tmp_path, 1, 2)
    (tmp_path / "photo.png").write_bytes(gif())
    (tmp_path / "link.png").symlink_to("photo.png")
    assert bitcnn.read_image(tmp_path / "link.png", 1, 2).shape == (1, 2, 3)
    with pytest.raises(OSError, match=r"more than 20 bytes.*photo\.png"):
        read_file(tmp_path / "photo.png", 20)
    assert read_file(tmp_path / "photo.png", len(gif())) == gif()
    odd = tmp_path / "a\nb\x1b[31m.png"
    odd.write_bytes(b"no image")
    with pytest.raises(OSError, match=r"a\\nb\\x1b\[31m\.png: unsupported image format") as e:
        bitcnn.read_image(odd, 1, 2)
    assert str(e.value).isprintable()


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
        (b"no image", (1, 2, 3), 0, OSError, "unsupported image format"),
        (b"", (1, 2, 3), 0, OSError, "unsupported image format"),
        (gif()[:20], (1, 2, 3), 0, OSError, "broken image"),
        ("no-such-file.jpg", (1, 2, 3), 0, FileNotFoundError, "no-such-file.jpg"),
        (__file__, (1, 2, 3), 0, OSError, "test_image.py: unsupported image format"),
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


def test_classify():
    with bitcnn.load("digits") as model:
        classes = model.classify(SAMPLE)
        assert classes[0].label == "7"
        assert len(classes) == 5
        scores = model(model.read_image(SAMPLE)).astype(np.float64)
        likely = np.exp(scores - scores.max())
        likely /= likely.sum()
        assert [c.index for c in classes] == np.argsort(-likely, kind="stable")[:5].tolist()
        np.testing.assert_allclose([c.probability for c in classes], sorted(likely)[:-6:-1], rtol=1e-12)
        assert len(model.classify(SAMPLE.read_bytes(), top=100)) == 10
        for top in (0, True, 1.5):
            with pytest.raises(ValueError, match="want a whole number from 1 on"):
                model.classify(SAMPLE, top=top)
        with pytest.raises(TypeError, match="float is not a photo, want a path, bytes, an array or a Pillow image"):
            model.classify(1.5)


def test_arrays_are_read_as_the_photos_that_they_are_of():
    rng = np.random.default_rng(2)
    colour = rng.integers(0, 256, (9, 13, 3), np.uint8)
    assert np.array_equal(bitcnn.read_image(colour, 9, 13), colour)
    assert np.array_equal(bitcnn.read_image(colour[::-1, ::2], 9, 7), colour[::-1, ::2])
    grey = colour[:, :, :1]
    assert np.array_equal(bitcnn.read_image(grey, 9, 13, 1), grey)
    assert np.array_equal(bitcnn.read_image(grey[:, :, 0], 9, 13, 1), grey)
    assert np.array_equal(bitcnn.read_image(grey, 9, 13), np.repeat(grey, 3, 2))
    clear = np.concatenate([colour, np.zeros_like(grey)], 2)
    assert (bitcnn.read_image(clear, 9, 13, background=(1, 2, 3)) == (1, 2, 3)).all()
    with bitcnn.load("digits") as model:
        x = bitcnn.read_image(SAMPLE, 28, 28, 1)
        assert model.classify(x) == model.classify(x[:, :, 0]) == model.classify(SAMPLE)
    for wrong, kind, text in [
        (colour / 255, TypeError, r"an image of float64, .*\.astype\(numpy\.uint8\)"),
        (colour.astype(np.int16), TypeError, "an image of int16, want an array of uint8$"),
        (colour.transpose(2, 0, 1), ValueError, r"an image of shape \(3, 9, 13\), want height, width and"),
        (colour[:0], ValueError, "an image of shape"),
        (colour[0, 0], ValueError, "an image of shape"),
    ]:
        with pytest.raises(kind, match=text):
            bitcnn.read_image(wrong, 9, 13)


def test_images_of_pillow_are_read_as_their_files():
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(3)
    photo = image.fromarray(rng.integers(0, 256, (40, 90, 3), np.uint8))
    clear = photo.convert("RGBA")
    clear.putalpha(100)
    for picture in (photo, photo.convert("L"), photo.convert("P"), photo.convert("1"), clear, clear.convert("LA")):
        file = io.BytesIO()
        picture.save(file, "PNG")
        want = bitcnn.read_image(file.getvalue(), 20, 20, background=(0, 90, 0))
        assert np.array_equal(bitcnn.read_image(picture, 20, 20, background=(0, 90, 0)), want), picture.mode
    assert bitcnn.read_image(photo.convert("CMYK"), 20, 20).shape == (20, 20, 3)
    exif = image.Exif()
    exif[0x0112] = 6  # turned
    file = io.BytesIO()
    photo.save(file, "PNG", exif=exif)
    turned = image.open(file)
    assert np.array_equal(bitcnn.read_image(turned, 90, 40), np.asarray(photo.rotate(-90, expand=True)))
    with pytest.raises(TypeError, match="of mode F"):
        bitcnn.read_image(photo.convert("F"), 20, 20)
    with bitcnn.load("digits") as model:
        assert model.classify(image.open(SAMPLE)) == model.classify(SAMPLE)
