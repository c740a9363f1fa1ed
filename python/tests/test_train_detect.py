"""Photos with boxes become a detector."""

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import bitcnn

pytest.importorskip("torch")
pytest.importorskip("tqdm")
pytest.importorskip("matplotlib")
pytest.importorskip("onnxscript")
Image = pytest.importorskip("PIL.Image")

import torch  # noqa: E402

from bitcnn._boxes import Box  # noqa: E402
from bitcnn.train import _annotations as annotations  # noqa: E402
from bitcnn.train import _detect as detect  # noqa: E402
from bitcnn.train import _precision as precision  # noqa: E402
from bitcnn.train.__main__ import main  # noqa: E402
from bitcnn.train._boxloss import assign, box_loss, generalized_overlap  # noqa: E402
from bitcnn.train._detector import DETECTORS, Detector, anchors_of, select  # noqa: E402
from bitcnn.train._distort import distort_with_boxes  # noqa: E402
from bitcnn.train._photos import PhotosError  # noqa: E402

KINDS = ("bar", "block")  # by their numbers in the text files


def scene(rng, width=64, height=48):
    """Light bars and blocks on a dark ground, and the lines of their file."""
    image = rng.normal(40, 8, (height, width))
    taken = np.zeros((height, width), bool)
    lines = []
    for _ in range(rng.integers(1, 4)):
        kind = int(rng.integers(2))
        h, w = ((6, 18), (14, 14))[kind]
        y, x = int(rng.integers(height - h)), int(rng.integers(width - w))
        if not taken[y : y + h, x : x + w].any():
            taken[y : y + h, x : x + w] = True
            image[y : y + h, x : x + w] = rng.uniform(170, 250)
            parts = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)
            lines.append(f"{kind} " + " ".join(map(str, parts)))
    return image.clip(0, 255).astype(np.uint8), lines


@pytest.fixture(scope="session")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    rng = np.random.default_rng(1)
    for name in ("images", "labels"):
        (folder / name).mkdir()
    for i in range(96):
        pixels, lines = scene(rng)
        Image.fromarray(pixels).save(folder / "images" / f"{i:03}.png")
        (folder / "labels" / f"{i:03}.txt").write_text("\n".join(lines) + "\n")
    (folder / "names.txt").write_text("\n".join(KINDS) + "\n")
    return folder


def train(photos, out, *more):
    return main([str(photos), "-o", str(out), "--network", "detector-grey", "--size", "64", "--threads", "1", *more])


@pytest.fixture(scope="session")
def trained(scenes, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "scenes.bcnn"
    assert train(scenes, out, "--labels", str(scenes / "names.txt"), "--epochs", "30", "--batch", "8") == 0
    return out


def result_of(out):
    return json.loads((out.with_suffix(".training") / "result.json").read_text())


def test_the_model_finds_what_it_has_not_seen(trained):
    result = result_of(trained)
    assert result["labels"] == list(KINDS)
    assert result["test"] == 19
    assert result["ap50"] > 60
    log = (trained.with_suffix(".training") / "log.txt").read_text()
    assert "runtime and PyTorch find the same boxes on 19 of 19 photos" in log
    with Image.open(trained.with_suffix(".training") / "precision.png") as picture:
        assert picture.size[0] > 300
    with bitcnn.load(trained, device="cpu") as model:
        assert model.labels == KINDS
        found = [b for file in result["test_photos"] for b in model.detect(file)]
    assert {b.label for b in found} == set(KINDS)
    for b in found:
        assert 0 <= b.left < b.right <= 64
        assert 0 <= b.top < b.bottom <= 48  # the photos lie between borders


def test_the_command_measures_the_same(trained, tmp_path):
    result = result_of(trained)
    for file in result["test_photos"]:
        for folder, name in (("images", file), ("labels", file.replace("images", "labels").replace(".png", ".txt"))):
            (tmp_path / folder).mkdir(exist_ok=True)
            shutil.copy(name, tmp_path / folder)
    command = [sys.executable, "-m", "bitcnn", "eval", "--model", trained, "--data", tmp_path, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    assert measured["images"] == result["test"]
    assert measured["objects"] == result["objects"]
    for key in ("ap", "ap50", "ap75"):
        assert result[key] == pytest.approx(100 * measured[key], abs=1e-9)
        for of in measured["classes"]:
            assert result["classes"][of["label"]][key] == pytest.approx(100 * of[key], abs=1e-9)
    assert all(0 < e < 20 for e in result["standard_errors"])


def test_a_seed_makes_the_same_model_and_a_training_goes_on(scenes, tmp_path, monkeypatch):
    from bitcnn.train import _loop as loop

    quick = ("--epochs", "3", "--batch", "32", "--mirror")
    whole, parts = tmp_path / "a" / "net.bcnn", tmp_path / "b" / "net.bcnn"
    for out in (whole, parts):
        out.parent.mkdir()
    assert train(scenes, whole, *quick) == 0
    saved = []

    def save(path, content, real=loop._save):
        real(path, content)
        saved.append(path.name)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_save", save)
    assert [train(scenes, parts, *quick) for _ in range(2)] == [130, 0]
    assert saved == ["network.pt"] * 3
    assert parts.read_bytes() == whole.read_bytes()
    assert result_of(parts) == result_of(whole)
    monkeypatch.undo()
    # Boxes belong to what is trained with.
    other = shutil.copytree(scenes, tmp_path / "other")
    (other / "labels" / "000.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    assert train(other, parts, *quick) == 1


@pytest.mark.parametrize("network", DETECTORS)
def test_an_exported_file_finds_the_boxes_of_pytorch(network, tmp_path):
    recipe = DETECTORS[network]
    torch.manual_seed(5)
    sizes = torch.rand(200, 2) * 40 + 4
    net = recipe.build(recipe.channels, 3, 96, anchors_of(sizes))
    with torch.no_grad():  # unequal statistics and scores that are neither 0 nor 1
        net.train()
        net(torch.randint(0, 256, (4, recipe.channels, 96, 96)).float())
        for head in net.heads:
            head[1].weight.mul_(0.1)
            head[1].bias.normal_()
    net.eval()
    out = tmp_path / "net.bcnn"
    bitcnn.convert(net.onnx(recipe.channels, 96), out, name="net", labels=["a", "b", "c"], input_dtype="uint8")
    rng = np.random.default_rng(2)
    seen = 0
    with bitcnn.load(out, device="cpu") as model:
        for width, height in ((96, 96), (96, 60), (60, 96)):
            photo = rng.integers(0, 256, (height, width, recipe.channels), np.uint8)
            x, frame = detect.read_input(model._session, photo, model.inputs[0], (0, 0, 0))
            exact = net.double()
            with torch.enable_grad():
                maps = [m.detach() for m in exact(torch.from_numpy(x).double().view(1, recipe.channels, 96, 96))]
            mine = select(exact, maps, 0.3)
            theirs = model.detect(photo, threshold=0.3, top=1000)
            on_photo = []
            for edges, index, score in zip(
                mine.boxes.tolist(), mine.classes.tolist(), mine.scores.tolist(), strict=True
            ):
                x0, x1 = (min(max(e * frame.width + frame.x, 0), width) for e in edges[::2])
                y0, y1 = (min(max(e * frame.height + frame.y, 0), height) for e in edges[1::2])
                if x0 < x1 and y0 < y1:
                    on_photo.append((index, score, x0, y0, x1, y1))
            got = [(b.index, b.score, b.left, b.top, b.right, b.bottom) for b in theirs]
            assert [g[0] for g in got] == [m[0] for m in on_photo]
            np.testing.assert_allclose(got, on_photo, rtol=0, atol=1e-4)
            seen += len(got)
    assert seen > 50


def test_training_needs_boxes_of_each_class_and_photos_on_both_sides(scenes, tmp_path, capsys):
    out, folder = tmp_path / "net.bcnn", tmp_path / "photos"
    few = folder / "few"
    few.mkdir(parents=True)

    def fails(about, *more):
        assert train(folder, out, "--epochs", "1", *more) == 1
        assert about in capsys.readouterr().err
        assert not out.exists()

    fails("photos: no photos in this folder or below")
    shutil.copy(scenes / "images" / "000.png", few / "a.png")
    fails("no photo has a file of boxes (NAME.txt beside it, or in labels beside images); for COCO's format")
    (few / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    fails("1 photos cannot be split, as near duplicates stay together")
    for i in range(1, 20):
        shutil.copy(scenes / "images" / f"{i:03}.png", few)
    (folder / "names.txt").write_text("bar\nblock\n")
    fails("block: no box to train with", "--labels", str(folder / "names.txt"), "--test", "0.1")
    (few / "broken.png").write_bytes(b"no image")
    fails("1 of 21 photos cannot be read; --skip-broken skips them")


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["--size", "60"], "detector-grey takes 32 to 1024, in steps of 16"),
        (["--network", "digits", "--labels", "x"], "--labels x: it is for detectors, and digits is not one"),
        (["--network", "digits", "--annotations", "x"], "--annotations x: it is for detectors"),
        (["--test-annotations", "x"], "--test-annotations x: there are no --test-photos"),
    ],
)
def test_wrong_arguments(arguments, about, tmp_path, capsys):
    with pytest.raises(SystemExit) as e:
        train(tmp_path, tmp_path / "net.bcnn", *arguments)
    assert e.value.code == 2
    assert about in capsys.readouterr().err


def photo_in(folder, name="a.png"):
    folder.mkdir(parents=True, exist_ok=True)
    Image.new("L", (20, 10), 90).save(folder / name)


def test_text_files_of_boxes(tmp_path):
    photo_in(tmp_path / "x")
    photo_in(tmp_path / "x" / "images" / "deep", "b.png")
    photo_in(tmp_path / "x", ".hidden.png")
    photo_in(tmp_path / "x", "none.png")
    (tmp_path / "x" / "a.txt").write_text("1 0.5 .5 1e-1 0.5\n\n  0\t+0.25 0.5 0.5 1.\r\n")
    (tmp_path / "x" / "labels" / "deep").mkdir(parents=True)
    (tmp_path / "x" / "labels" / "deep" / "b.txt").write_text("2 0.5 0.5 0 0\n")
    found = annotations.find_yolo(tmp_path, None)
    assert [f.name for f in found.files] == ["a.png", "b.png", "none.png"]
    assert found.labels == ("0", "1", "2")
    first, second, third = (b.tolist() for b in found.boxes)
    assert first == [[1, 0.45, 0.25, 0.55, 0.75, 0], [0, 0, 0, 0.5, 1, 0]]
    assert second == [[2, 0.5, 0.5, 0.5, 0.5, 0]]
    assert third == []
    data = detect.read(found, "", 1, 32, False)
    assert data.truths[0].tolist() == [[1, 9, 2.5, 11, 7.5, 0], [0, 0, 0, 10, 10, 0]]
    # 20 x 10 pixels become 32 x 16, with 8 rows of grey above and below.
    assert data.images.shape == (3, 1, 32, 32)
    assert data.images[0, 0, :, 0].tolist() == [128] * 8 + [90] * 16 + [128] * 8
    np.testing.assert_allclose(data.boxes[0], [[1, 0.45, 0.375, 0.55, 0.625, 0], [0, 0, 0.25, 0.5, 0.75, 0]], atol=1e-6)
    assert data.boxes[2, :, 0].tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("0 1 1 1", "line 1: want a class and four numbers"),
        ("0 1 1 1 1 1", "line 1: want a class and four numbers"),
        ("0.0 1 1 1 1", "line 1: want a class and four numbers"),
        ("0 1 1 1 nan", "line 1: want a class and four numbers"),
        ("0 1 1 1 1_0", "line 1: want a class and four numbers"),
        ("0 1 1 1 ٣", "line 1: want a class and four numbers"),
        ("0 1 1 1 1e999", "line 1: a box with an edge at -inf"),
        ("\n3 1 1 1 1", "line 2: class 3, want 0 to 1"),
        ("-1 1 1 1 1", "line 1: class -1, want 0 to 1"),
        ("99999999999999999999 1 1 1 1", "line 1: want a class"),
        ("0 0.5 0.5 -0.5 0.5", "line 1: a box of -0.5×0.5"),
        ("\xff\xfe0 1 1 1 1", "line 1: want a class"),
    ],
)
def test_broken_text_files(line, about, tmp_path):
    photo_in(tmp_path)
    (tmp_path / "a.txt").write_bytes(line.encode("latin-1" if "\xff" in line else "utf-8"))
    with pytest.raises(PhotosError, match=r"a\.txt: line ") as e:
        annotations.find_yolo(tmp_path, ("x", "y"))
    assert about in str(e.value)


def test_odd_files_and_names(tmp_path, capsys):
    out = tmp_path / "net.bcnn"
    folder = tmp_path / "photos"
    photo_in(folder, "a\nb\x1b[31m.png")
    (folder / "a\nb\x1b[31m.txt").write_text("zero")
    assert train(folder, out) == 1
    told = capsys.readouterr().err
    assert r"a\nb\x1b[31m.txt: line 1: want a class" in told
    assert all(line.isprintable() for line in told.split("\n"))
    (folder / "a\nb\x1b[31m.txt").unlink()

    os.mkfifo(folder / "a\nb\x1b[31m.txt")  # a pipe that nobody writes to
    assert train(folder, out) == 1
    assert "not a regular file" in capsys.readouterr().err
    (folder / "a\nb\x1b[31m.txt").unlink()
    (folder / "a\nb\x1b[31m.txt").symlink_to("/dev/zero")
    assert train(folder, out) == 1
    assert "not a regular file" in capsys.readouterr().err

    # A link to a folder in the folder is followed, and one below it is not.
    photo_in(tmp_path / "elsewhere", "c.png")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "in").symlink_to(tmp_path / "elsewhere")
    assert [f.name for f in annotations.find_photos(tmp_path / "linked")] == ["c.png"]
    (tmp_path / "elsewhere" / "round").symlink_to(tmp_path / "linked")
    with pytest.raises(PhotosError, match=r"round: a link to a folder, which is followed only directly in"):
        annotations.find_photos(tmp_path / "linked")
    with pytest.raises(PhotosError, match="there is no such folder"):
        annotations.find_photos(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "about"),
    [
        (b"", "no classes"),
        (b"a\n\nb", "class 1 is called '', want a printable name"),
        (b"a\nb\x1b\n", r"class 1 is called 'b\x1b'"),
        (b"a\na\n", "two classes are called 'a'"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_names_of_classes(content, about, tmp_path):
    file = tmp_path / "names.txt"
    file.write_bytes(content)
    with pytest.raises(PhotosError) as e:
        annotations.read_labels(file)
    assert about in str(e.value)
    file.write_bytes(b"one\r\ntwo words\n\n")
    assert annotations.read_labels(file) == ("one", "two words")


COCO = {
    "images": [{"id": 7, "file_name": "sub/a.png"}, {"id": 8, "file_name": "b.png"}],
    "categories": [{"id": 3, "name": "dog"}, {"id": 1, "name": "cat"}],
    "annotations": [
        {"image_id": 8, "category_id": 3, "bbox": [1, 2, 3, 4.5]},
        {"image_id": 8, "category_id": 1, "bbox": [-5, 0, 40, 4], "iscrowd": 1},
    ],
}


def changed(change):
    whole = json.loads(json.dumps(COCO))
    change(whole)
    return json.dumps(whole)


def test_files_in_the_format_of_coco(tmp_path):
    file = tmp_path / "boxes.json"
    file.write_text(json.dumps(COCO))
    found = annotations.find_coco(file, tmp_path, None)
    assert found.labels == ("cat", "dog")
    assert found.files == (tmp_path / "sub" / "a.png", tmp_path / "b.png")
    assert [b.tolist() for b in found.boxes] == [[], [[1, 1, 2, 4, 6.5, 0], [0, -5, 0, 35, 4, 1]]]
    assert found.counts() == {"cat": 0, "dog": 1}
    assert annotations.find_coco(file, tmp_path, ("dog", "cat", "cow")).boxes[1][:, 0].tolist() == [0, 1]
    photo_in(tmp_path / "sub")
    photo_in(tmp_path, "b.png")
    data = detect.read(found, "", 1, 32, False)
    # What is beyond the photo is cut for the training and not for the test.
    np.testing.assert_allclose(data.boxes[1, 1], [0, 0, 0.25, 1, 0.45, 1], atol=1e-6)
    assert data.truths[1][1].tolist() == [0, -5, 0, 35, 4, 1]
    with pytest.raises(PhotosError, match="the category 'cat' is not one of the classes: dog"):
        annotations.find_coco(file, tmp_path, ("dog",))


@pytest.mark.parametrize(
    ("content", "about"),
    [
        ("", "not in COCO's format"),
        ('{"images": ', "not in COCO's format"),
        ("[" * 100_000, "not in COCO's format"),
        ("[]", "images is not a list of objects"),
        ('{"images": [1]}', "images is not a list of objects"),
        ('{"images": {}}', "images is not a list of objects"),
        ("{}", "no images or no categories"),
        (changed(lambda w: w["images"][0].pop("id")), "images, entry 0: id is not a whole number"),
        (changed(lambda w: w["images"][0].update(id=True)), "images, entry 0: id is not a whole number"),
        (changed(lambda w: w["images"][0].update(id=8)), "two images have the id 8"),
        (changed(lambda w: w["images"][0].update(file_name=3)), "images, entry 0: file_name is not a text"),
        (changed(lambda w: w["images"][0].update(file_name="/etc/passwd")), "is no file in the folder"),
        (changed(lambda w: w["images"][0].update(file_name="a/../../b")), "is no file in the folder"),
        (changed(lambda w: w["images"][0].update(file_name="")), "is no file in the folder"),
        (changed(lambda w: w["images"][0].update(file_name="a\0b")), "is no file in the folder"),
        (changed(lambda w: w["categories"][0].update(id=1)), "two categories have the id 1"),
        (changed(lambda w: w["categories"][0].update(name="cat")), "two classes are called 'cat'"),
        (changed(lambda w: w["categories"][0].update(name="a\nb")), "want a printable name"),
        (changed(lambda w: w["annotations"][0].update(image_id=9)), "annotation 0 is of image 9, which is not listed"),
        (changed(lambda w: w["annotations"][0].update(category_id=9)), "of category 9, which is not listed"),
        (changed(lambda w: w["annotations"][0].update(bbox=[1, 2, 3])), "a bbox of 3 values, want 4 numbers"),
        (changed(lambda w: w["annotations"][0].update(bbox=[1, 2, 3, "4"])), "a bbox of 4 values, want 4 numbers"),
        (changed(lambda w: w["annotations"][0].update(bbox=[1, 2, -3, 4])), "annotation 0: a box of -3×4"),
        (changed(lambda w: w["annotations"][0].update(bbox=[1, 2, 10**400, 4])), "annotation 0: "),
        (changed(lambda w: w["annotations"][0].update(bbox=[1, 2, math.nan, 4])), "NaN is not JSON"),
        (changed(lambda w: w["annotations"][1].update(iscrowd="no")), "iscrowd is not a whole number"),
    ],
)
def test_broken_files_of_coco(content, about, tmp_path):
    file = tmp_path / "boxes.json"
    file.write_text(content)
    with pytest.raises(PhotosError, match=r"boxes\.json: ") as e:
        annotations.find_coco(file, tmp_path, None)
    assert about in str(e.value)


def test_anchors_are_the_sizes_there_are():
    torch.manual_seed(3)
    kinds = torch.tensor([[8.0, 20], [10, 10], [30, 12], [40, 40], [90, 30], [100, 100]])
    sizes = kinds.repeat(50, 1) * (1 + 0.02 * torch.randn(300, 2))
    anchors = anchors_of(sizes)
    assert anchors.shape == (2, 3, 2)
    ordered = kinds[kinds.prod(1).argsort()]
    np.testing.assert_allclose(anchors.view(6, 2), ordered, rtol=0.02)
    assert anchors_of(torch.tensor([[5.0, 0]])).tolist() == [[[5, 1]] * 3] * 2


def test_objects_are_assigned_to_cells_and_anchors():
    # Two heads, of 4 x 4 and 2 x 2 cells; anchors in parts of the image.
    anchors = torch.tensor([[[0.1, 0.1], [0.1, 0.2], [0.2, 0.1]], [[0.4, 0.4], [0.4, 0.8], [0.8, 0.4]]])
    boxes = torch.zeros(2, 3, 6)
    boxes[:, :, 0] = -1
    boxes[0, 0] = torch.tensor([1, 0.55, 0.3, 0.65, 0.45, 0])  # 0.1 x 0.15 at (0.6, 0.375)
    boxes[0, 1] = torch.tensor([0, 0.55, 0.3, 0.66, 0.45, 0])  # nearly the same place, less alike
    boxes[1, 0] = torch.tensor([0, 0.6, 0.25, 1.0, 0.85, 0])  # 0.4 x 0.6 at (0.8, 0.55)
    boxes[1, 1] = torch.tensor([0, 0, 0, 0.4, 0.4, 1])  # a crowd
    boxes[1, 2] = torch.tensor([0, 0.3, 0.3, 0.3, 0.5, 0])  # without an area
    fine, coarse = assign(boxes, anchors, [(4, 4), (2, 2)])
    # Of 0.1 x 0.15 and the anchors 2/3, 3/4 and 2/5 are in common.
    got = sorted(zip(*(t.tolist() for t in (fine.image, fine.anchor, fine.row, fine.column, fine.which)), strict=True))
    assert got == [(0, 0, 1, 2, 0), (0, 1, 1, 2, 0)]
    # And so of 0.4 x 0.6.
    got = sorted(zip(*(t.tolist() for t in (coarse.image, coarse.anchor, coarse.row, coarse.column)), strict=True))
    assert got == [(1, 0, 1, 1), (1, 1, 1, 1)]
    nothing = torch.full((2, 1, 6), -1.0)
    assert [len(a.image) for a in assign(nothing, anchors, [(4, 4), (2, 2)])] == [0, 0]


def test_generalized_overlaps_by_hand():
    a = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1], [0, 0, 1, 1]])
    b = torch.tensor([[1.0, 1, 3, 3], [0, 0, 1, 1], [2, 0, 3, 1]])
    # 1 of 7, and 2 of 9 empty; all; nothing, and 1 of 3 empty.
    np.testing.assert_allclose(generalized_overlap(a, b), [1 / 7 - 2 / 9, 1, -1 / 3], atol=1e-6)


class Maps(torch.nn.Module):
    """A detector of one class whose maps are given: heads of 2 x 2 cells and of one, of an input of 32."""

    boxes = Detector.boxes

    def __init__(self):
        super().__init__()
        self.size, self.classes = 32, 2
        self.anchors = torch.tensor([[[8.0, 8], [8, 16], [16, 8]], [[32, 32], [20, 32], [32, 20]]])


def test_the_loss_by_hand():
    net = Maps()
    maps = [torch.zeros(1, 21, 2, 2), torch.zeros(1, 21, 1, 1)]
    # An object of 8 x 8 pixels in the middle of the first cell: the first anchor has to find it, as (8 x 16 and
    # 16 x 8) the others do, which have half in common. All give the centre of the cell and their own size.
    boxes = torch.tensor([[[1, 4 / 32, 4 / 32, 12 / 32, 12 / 32, 0]]])
    loss, good = box_loss(net, maps, boxes)
    # All 15 boxes have an objectness of 0, which costs log 2 each way, but the other boxes of the cell: none overlaps
    # the object by more than 0.6. Classes cost log 2 each; distances are 0, and twice 1/2.
    assert float(loss) == pytest.approx(2 * (0.5 + 0.5) / 3 + math.log(2) + 15 * math.log(2) / 3, rel=1e-5)
    assert float(good) == 0  # of equals the first class is the answer
    maps[0].view(1, 3, 7, 2, 2)[0, 0, 6, 0, 0] = 1  # the first anchor now knows the class
    assert float(box_loss(net, maps, boxes)[1]) == pytest.approx(1 / 3)
    # A crowd around the whole input: no box there is wrong.
    crowd = torch.tensor([[[1, 0, 0, 1, 1, 1.0]]])
    loss, good = box_loss(net, maps, crowd)
    assert float(loss) == 0
    # Nothing at all: each of them is.
    loss, _ = box_loss(net, maps, torch.full((1, 1, 6), -1.0))
    assert float(loss) == pytest.approx(15 * math.log(2), rel=1e-5)


def test_views_move_boxes_with_what_is_in_them():
    torch.manual_seed(4)
    recipe = replace(DETECTORS["detector-grey"], light=False)
    images = torch.full((64, 1, 96, 96), 20, dtype=torch.uint8)
    images[:, :, 30:60, 40:50] = 250
    boxes = torch.zeros(64, 2, 6)
    boxes[:, 0] = torch.tensor([1, 40 / 96, 30 / 96, 50 / 96, 60 / 96, 0])
    boxes[:, 1, 0] = -1
    for mirror in (False, True):
        views, seen = distort_with_boxes(images, boxes, recipe, mirror)
        assert views.shape == (64, 1, 96, 96)
        assert seen[:, 0, 0].tolist() == [1] * 64
        assert seen[:, 0, 5].tolist() == [0] * 64
        for view, box in zip(views, seen[:, 0], strict=True):
            rows, columns = (view[0] > 136).nonzero().T  # nearer to what is in the box than to grey
            edges = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            np.testing.assert_allclose(box[1:5] * 96, torch.stack(edges), atol=1.6)
    corner = torch.tensor([[[0, 0, 0, 0.05, 0.05, 0.0]]]).expand(64, 1, 6)
    _, seen = distort_with_boxes(images, corner, recipe, False)
    cut = seen[:, 0, 5] == 1  # by which little is left of some
    assert 0 < int(cut.sum()) < 64
    assert seen[:, :, 1:5].min() >= 0


def box(score, left, top, right, bottom, index=0):
    return Box("", index, score, left, top, right, bottom)


def test_precision_by_hand():
    meter = precision.Meter(["a", "b"])
    truths = np.array([[0, 0, 0, 10, 10, 0], [0, 20, 0, 30, 10, 0], [0, 50, 0, 100, 50, 1]], float)
    # Right at all thresholds; right up to 0.6; twice the same; nothing; in a crowd, which does not count.
    found = [
        (0.9, 0, 0, 10, 10),
        (0.8, 20, 0, 30, 6),
        (0.7, 0, 0, 10, 10),
        (0.6, 40, 60, 45, 70),
        (0.5, 60, 10, 70, 20),
    ]
    meter.add(truths, [box(*f) for f in found])
    got = meter.precision()
    assert got.photos == 1
    assert got.objects == 2
    assert list(got.classes) == ["a"]
    assert got.mean[1] == pytest.approx(100)
    # Half of the recalls, 0 to 0.5, are reached with a precision of 1.
    assert got.mean[2] == pytest.approx(100 * 51 / 101)
    assert got.mean[0] == pytest.approx((3 * 100 + 7 * 100 * 51 / 101) / 10)
    meter.add(np.array([[0, 0, 0, 10, 10, 0]], float), [])  # two of three are found
    assert meter.precision().mean[1] == pytest.approx(100 * 67 / 101)
    assert meter.precision().error[1] > 0
    assert meter.precision() == meter.precision()
    assert math.isnan(precision.Meter(["a"]).precision().error[0])
