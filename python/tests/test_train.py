"""A folder of photos becomes a model."""

import io
import json
import pickle
import shutil

import numpy as np
import pytest

import bitcnn

pytest.importorskip("torch")
pytest.importorskip("tqdm")
pytest.importorskip("matplotlib")
pytest.importorskip("onnxscript")
Image = pytest.importorskip("PIL.Image")
ImageDraw = pytest.importorskip("PIL.ImageDraw")

import torch  # noqa: E402

from bitcnn.train import _photos as photos_of  # noqa: E402
from bitcnn.train import _report as report  # noqa: E402
from bitcnn.train.__main__ import main  # noqa: E402
from bitcnn.train._distort import centre, random_affine  # noqa: E402
from bitcnn.train._inputs import GreyThreshold, LocalBinaryPattern, grey  # noqa: E402
from bitcnn.train._networks import RECIPES  # noqa: E402

SHAPES = ("circle", "cross", "square")


def draw(rng, shape, side=40):
    """A shape somewhere on a ground, in colours."""
    ground, ink = rng.integers(0, 90, 3), rng.integers(150, 255, 3)
    image = Image.new("RGB", (side, side), tuple(map(int, ground)))
    pen = ImageDraw.Draw(image)
    x, y, r = *rng.integers(15, side - 15, 2), rng.integers(8, 13)
    box = [int(x - r), int(y - r), int(x + r), int(y + r)]
    fill = tuple(map(int, ink))
    if shape == "circle":
        pen.ellipse(box, fill)
    elif shape == "square":
        pen.rectangle(box, fill)
    else:
        pen.line(box, fill, 5)
        pen.line([box[0], box[3], box[2], box[1]], fill, 5)
    noise = rng.normal(0, 6, (side, side, 3))
    return Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        (folder / shape).mkdir()
        for i in range(40):
            ending = (".png", ".jpg", ".bmp", ".webp")[i % 4]
            draw(rng, shape).save(folder / shape / f"Any name {i}{ending}", quality=95)
    return folder


def train(photos, out, *more):
    return main([str(photos), "-o", str(out), "--threads", "1", *more])


QUICK = ("--network", "vehiclenet", "--size", "32", "--batch", "16", "--epochs", "24")


@pytest.fixture(scope="session")
def trained(shapes, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "shapes.bcnn"
    assert train(shapes, out, *QUICK) == 0
    return out


def test_the_model_knows_photos_that_it_has_not_seen(trained):
    folder = trained.with_suffix(".training")
    result = json.loads((folder / "result.json").read_text())
    assert result["labels"] == list(SHAPES)
    assert result["test"] == 24
    assert result["percent"] > 70
    with Image.open(folder / "confusion.png") as picture:
        assert picture.size[0] > 300
    log = (folder / "log.txt").read_text()
    assert "runtime and PyTorch agree on 24 of 24 photos" in log
    with bitcnn.load(trained) as model:
        assert model.labels == SHAPES
        assert model.name == "shapes"
        assert model.inputs[0].resize == round(32 * 25 / 24)
        for file, answer in zip(result["test_photos"], result["answers"], strict=True):
            assert model(model.read_image(file)).argmax() == answer


def test_a_seed_makes_the_same_model_and_a_training_goes_on(shapes, trained, tmp_path, monkeypatch):
    from bitcnn.train import _loop as loop

    saved = []

    def save(path, content, real=loop._save):
        real(path, content)
        saved.append(path.name)
        if len(saved) in (2, 15):  # in the teacher, then in the network
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_save", save)
    out = tmp_path / "shapes.bcnn"
    assert [train(shapes, out, *QUICK) for _ in range(3)] == [130, 130, 0]
    assert saved == ["teacher.pt"] * 12 + ["distilled.pt"] * 24
    assert out.read_bytes() == trained.read_bytes()
    monkeypatch.undo()
    assert train(shapes, out, *QUICK, "--mirror") == 1  # the checkpoint is of another training


@pytest.fixture(scope="session")
def once(shapes, tmp_path_factory):
    """A training with a checkpoint that is soon there."""
    out = tmp_path_factory.mktemp("once") / "shapes.bcnn"
    arguments = ("--network", "vehiclenet", "--size", "32", "--epochs", "1", "--no-teacher")
    assert train(shapes, out, *arguments) == 0
    return out, arguments


def cut(content):
    return content[: len(content) // 2]


def pickled(values):
    file = io.BytesIO()
    torch.save(values, file)
    return file.getvalue()


@pytest.mark.parametrize(
    "broken",
    [
        cut,
        lambda _: b"",
        lambda _: b"no checkpoint",
        lambda _: pickled({}),
        lambda _: pickled([1, 2]),
        lambda content: pickled(torch.load(io.BytesIO(content), weights_only=True) | {"weights": {}}),
        lambda content: pickled(torch.load(io.BytesIO(content), weights_only=True) | {"epoch": "one"}),
        lambda _: pickle.dumps(print),
    ],
)
def test_a_broken_checkpoint_is_named(shapes, once, capsys, broken):
    out, arguments = once
    checkpoint = out.with_suffix(".training") / "network.pt"
    whole = checkpoint.read_bytes()
    try:
        checkpoint.write_bytes(broken(whole))
        assert train(shapes, out, *arguments) == 1
    finally:
        checkpoint.write_bytes(whole)
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith(f"bitcnn.train: {checkpoint} is not a checkpoint of this training (")
    assert "weights_only" not in told[-1]  # no advice to run what is in the file
    assert told[-1].endswith(f"remove {checkpoint.parent} to start over")


def test_two_trainings_do_not_share_a_folder(shapes, once, capsys):
    from bitcnn.train import _loop as loop

    out, arguments = once
    with loop.alone(out.with_suffix(".training")):
        assert train(shapes, out, *arguments) == 1
    assert "another training is writing to" in capsys.readouterr().err
    assert train(shapes, out, *arguments) == 0


@pytest.mark.parametrize("network", RECIPES)
def test_every_network(shapes, network, tmp_path):
    few = tmp_path / "photos"
    for shape in SHAPES[:2]:
        (few / shape).mkdir(parents=True)
        for i in (0, 1, 4, 5, 8):
            for file in (shapes / shape).glob(f"Any name {i}.*"):
                shutil.copy(file, few / shape)
    recipe = RECIPES[network]
    size = str(max(recipe.least, 32))
    out = tmp_path / "net.bcnn"
    assert train(few, out, "--network", network, "--size", size, "--epochs", "2", "--no-teacher", "--mirror") == 0
    with bitcnn.load(out) as model:
        binary = [row for row in model.report() if row["precision"] == "binary"]
        want = {"quicknet-small": 16, "birealnet18": 16, "digits": 3}.get(
            network, 5 if network == "vehiclenet-rgb" else 4
        )
        assert len(binary) >= want


def test_photos_for_the_test_may_be_a_folder(shapes, tmp_path, capsys):
    apart = tmp_path / "apart"
    (apart / "square").mkdir(parents=True)
    for i in (0, 1):
        for file in (shapes / "square").glob(f"Any name {i}.*"):
            shutil.copy(file, apart / "square")
    out = tmp_path / "net.bcnn"
    assert train(shapes, out, *QUICK[:-1], "1", "--test-photos", str(apart), "--no-teacher") == 0
    assert "120 for training, 2 for testing" in capsys.readouterr().out
    (apart / "triangle").mkdir()
    assert train(shapes, out, *QUICK[:-1], "1", "--test-photos", str(apart)) == 1
    assert "triangle: not a class; classes: circle, cross, square" in capsys.readouterr().err


def test_what_is_wrong_with_photos_is_said(shapes, tmp_path, capsys):
    folder, out = tmp_path / "photos", tmp_path / "net.bcnn"

    def fails(about):
        assert train(folder, out, *QUICK[:-1], "1", "--no-teacher") == 1
        printed = capsys.readouterr()
        assert about in printed.err + printed.out
        assert not out.exists()

    fails("photos: there is no such folder")
    folder.mkdir()
    fails("no classes, want a folder of photos for each of two classes or more")
    shutil.copy(shapes / "cross" / "Any name 0.png", folder)
    fails("; its 1 photos are not in a folder of a class")
    shutil.copytree(shapes / "cross", folder / "cross")
    fails("one class, 'cross', want a folder")
    (folder / "circle").mkdir()
    (folder / "circle" / "notes.txt").write_text("none")
    fails("circle: no photos (*.jpg, ")
    shutil.copy(shapes / "circle" / "Any name 0.png", folder / "circle")
    fails("circle: 1 photos, and none is left for training, as near duplicates stay together")
    for i in range(3):  # another size of the same photo
        side = 50 + 10 * i
        Image.open(shapes / "circle" / "Any name 0.png").resize((side, side)).save(folder / "circle" / f"{i}.png")
    fails("circle: 4 photos, and none is left for testing, as near duplicates stay together")
    for i in range(1, 8):
        for file in (shapes / "circle").glob(f"Any name {i}.*"):
            shutil.copy(file, folder / "circle")
    (folder / "circle" / "broken.jpg").write_bytes(b"\xff\xd8 not really")
    (folder / "circle" / "broken.webp").write_bytes(b"RIFF not really")
    fails("2 of 53 photos cannot be read; --skip-broken skips them")
    assert train(folder, out, *QUICK[:-1], "1", "--no-teacher", "--skip-broken") == 0
    assert "skipping 2 unreadable photos" in capsys.readouterr().out


def test_names_are_printed_with_escapes_and_odd_files_are_no_photos(shapes, tmp_path, capsys):
    folder = shutil.copytree(shapes, tmp_path / "photos")
    (folder / "circle" / "a\nb\x1b[31m.png").write_bytes(b"no image")
    (folder / "circle" / "a\nb\x1b[31m.tif").write_bytes(b"no image")
    (folder / "circle" / "device.png").symlink_to("/dev/zero")
    (folder / "circle" / "device.tif").symlink_to("/dev/zero")
    out = tmp_path / "no\x1b.bcnn"
    assert train(folder, out) == 1
    told = "".join(capsys.readouterr())
    assert "4 of 124 photos cannot be read" in told
    assert told.count(r"a\nb\x1b[31m.") == 2
    assert told.count("not a regular file") == 2
    assert all(line.isprintable() for line in told.split("\n"))
    with pytest.raises(SystemExit):
        train(folder, tmp_path / "no\x1b")
    assert r"no\x1b: the name must end in .bcnn" in capsys.readouterr().err


def test_what_is_transparent_stays_so_for_the_runtime(tmp_path):
    Image.new("RGBA", (3, 2), (200, 100, 50, 0)).save(tmp_path / "clear.tif")
    Image.new("RGB", (3, 2), (200, 100, 50)).save(tmp_path / "opaque.tif")
    assert (bitcnn.read_image(photos_of.source_of(tmp_path / "clear.tif"), 2, 3) == 0).all()
    assert (bitcnn.read_image(photos_of.source_of(tmp_path / "opaque.tif"), 2, 3) == (200, 100, 50)).all()


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["--size", "33"], "vehiclenet takes 16 to 1024, in steps of 4"),
        (["--size", "12"], "vehiclenet takes 16 to 1024"),
        (["--network", "resnet"], "invalid choice: 'resnet'"),
        (["--test", "1"], "1 is not a fraction between 0 and 1"),
        (["--epochs", "0"], "0 is less than 1"),
        (["--learning-rate", "2"], "2 is not a rate between 0 and 1"),
        (["--device", "toaster"], "--device toaster: "),
        (["-o", "net.onnx"], "the name must end in .bcnn"),
        (["-o", "/no/such/folder/net.bcnn"], "there is no folder /no/such/folder"),
    ],
)
def test_wrong_arguments(arguments, about, tmp_path, capsys):
    with pytest.raises(SystemExit) as e:
        train(tmp_path, tmp_path / "net.bcnn", *arguments)
    assert e.value.code == 2
    assert about in capsys.readouterr().err


def test_near_duplicates_are_found_and_nothing_else(tmp_path):
    rng = np.random.default_rng(5)
    folder = tmp_path / "photos"
    changes = {
        "smaller": lambda p: p.resize((64, 64)),
        "coarse": lambda p: p,
        "lighter": lambda p: p.point(lambda v: min(255, v + 12)),
        "cut": lambda p: p.crop((1, 1, 99, 99)),
    }
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for i in range(30):
            small = rng.normal(128, 60, (7, 7, 3)).clip(0, 255).astype(np.uint8)
            photo = Image.fromarray(small).resize((100, 100), Image.Resampling.BICUBIC)
            photo.save(folder / name / f"{i}.png")
            if i < 5:
                for change, apply in changes.items():
                    apply(photo).save(folder / name / f"{i} {change}.jpg", quality=40 if change == "coarse" else 90)
    photos = photos_of.find(folder)
    images, good = photos_of.read(photos, "", 100, 3, 0)
    assert len(good) == 100
    groups = photos_of.near_duplicates(images)
    of = {}
    for file, group in zip(photos.files, groups, strict=True):
        of.setdefault((file.parent.name, file.stem.split()[0]), set()).add(group)
    assert all(len(found) == 1 for found in of.values())
    assert len(set(groups)) == 60
    train_side, test_side = photos_of.split(photos, groups, 0.3, 1)
    assert sorted(train_side + test_side) == list(range(100))
    assert not {groups[i] for i in train_side} & {groups[i] for i in test_side}
    assert len(test_side) == 30
    assert (train_side, test_side) == photos_of.split(photos, groups, 0.3, 1)
    assert test_side != photos_of.split(photos, groups, 0.3, 2)[1]


def test_distortions_of_nothing_are_the_centre():
    torch.manual_seed(1)
    x = torch.randint(0, 256, (2, 3, 100, 100)).float()
    y = random_affine(x, 96, rotation=0, zoom=(1, 1), shift=0)
    assert torch.equal(y.round(), centre(x, 96))
    mirrored = random_affine(x, 96, rotation=0, zoom=(1, 1), shift=0, mirror=True).round()
    assert all(torch.equal(m, c) or torch.equal(m, c.flip(2)) for m, c in zip(mirrored, centre(x, 96), strict=True))


def test_grey_thresholds_are_levels():
    torch.manual_seed(1)
    x = torch.randint(0, 256, (1, 3, 64, 64)).float()
    r, g, b = x.long().unbind(1)
    level = (77 * r + 150 * g + 29 * b) >> 8
    for threshold in (-2.0, -1.7031, -1.703125, -0.5, 0.5):
        scheme = GreyThreshold()
        with torch.no_grad():
            scheme.threshold.fill_(threshold)
        assert torch.equal(scheme(x)[:, 0] > 0, level >= scheme.levels()[0])


def test_local_binary_patterns():
    torch.manual_seed(1)
    x = torch.randint(0, 256, (1, 3, 7, 6)).float()
    bits = LocalBinaryPattern()(x)[0]
    level = grey(x)[0, 0].tolist()
    for channel, (dy, dx) in enumerate([(-1, -1), (0, 1), (1, -1)]):
        for y in range(7):
            for column in range(6):
                neighbour = level[min(max(y + dy, 0), 6)][min(max(column + dx, 0), 5)]
                assert bits[channel, y, column] == (1 if neighbour > level[y][column] else -1)


def test_accuracy_and_its_interval():
    assert str(report.Accuracy(90, 100)) == "90.0 % (86.6 to 92.6)"
    assert str(report.Accuracy(4, 4)) == "100.0 % (80.0 to 100.0)"
    assert str(report.Accuracy(0, 4)) == "0.0 % (0.0 to 20.0)"
    matrix = report.confusion(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), 3)
    assert matrix.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
