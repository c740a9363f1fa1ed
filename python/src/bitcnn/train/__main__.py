"""python -m bitcnn.train: a folder of photos becomes a model."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

try:
    import torch

    from . import _detect as detect
    from . import _loop as loop
    from . import _photos as photos_of
    from . import _report as report
    from ._detector import DETECTORS, DetectorRecipe
    from ._networks import RECIPES, ClassifierRecipe, Network, Recipe
    from ._photos import Photos, PhotosError, say
except ModuleNotFoundError as e:
    sys.exit(f"{e}: training needs torch, onnx, onnxscript, matplotlib and tqdm: pip install 'bitcnn[train]'")

from .. import convert, load
from .._image import escape

_DESCRIPTION = """
Trains a binary network on photos: PHOTOS/CLASS/ANY NAME, JPEG, PNG, GIF, BMP or WebP, TIFF and
AVIF (with pillow) or HEIC (with pillow-heif). Some photos are held out for testing, with near
duplicates on one side. First a network of the same shape with real weights is trained, then the
binary one on its answers and the labels.

With --network detector it trains an object detector on photos with boxes: YOLO's text files,
PHOTOS/ANY NAME.txt beside the photo or in labels beside images, or --annotations, a file in
COCO's format. There is no teacher.

OUT is a model for 'bcnn classify --model OUT PHOTO', 'bcnn detect' and bitcnn.load. The folder
OUT.training beside it has the log, a picture of the confusion matrix or the precision, the list
of test photos, and checkpoints: repeat the command to resume.

Exit status: 0 on success, 1 if photos are wrong or the runtime and PyTorch disagree, 2 for wrong
usage.
"""


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a fraction between 0 and 1")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _rate(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a rate between 0 and 1")
    return value


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(escape(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m bitcnn.train", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "photos", type=Path, metavar="PHOTOS", help="folder with one folder per class, or of photos with boxes"
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="model to write, *.bcnn")
    parser.add_argument("--network", choices=[*RECIPES, *DETECTORS], default="vehiclenet", help="(default %(default)s)")
    parser.add_argument("--size", type=_positive, help="width and height of the input (default: the network's)")
    parser.add_argument(
        "--test", type=_fraction, default=0.2, help="fraction held out for testing (default %(default)s)"
    )
    parser.add_argument(
        "--test-photos", type=Path, help="test on this folder of the same classes instead of a held-out fraction"
    )
    parser.add_argument("--annotations", type=Path, help="boxes of the photos, in COCO's format (for detectors)")
    parser.add_argument("--test-annotations", type=Path, help="the same for --test-photos")
    parser.add_argument(
        "--labels", type=Path, help="file of class names, one per line (for detectors; default: those of --annotations)"
    )
    parser.add_argument(
        "--epochs",
        type=_positive,
        help="epochs; the teacher takes half as many (default: by the number of photos)",
    )
    parser.add_argument("--batch", type=_positive, help="batch size (default: the network's)")
    parser.add_argument("--learning-rate", type=_rate, help="(default: the network's)")
    parser.add_argument("--no-teacher", action="store_true", help="train on the labels only")
    parser.add_argument(
        "--mirror", action="store_true", help="mirror half of the photos, if left and right do not matter"
    )
    parser.add_argument("--skip-broken", action="store_true", help="skip unreadable photos")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed for the split and all other randomness (default %(default)s)"
    )
    parser.add_argument("--device", default="cpu", help='device to train on, such as "cuda" (default %(default)s)')
    parser.add_argument("--threads", type=_positive, help="PyTorch threads (default: PyTorch's choice)")
    return parser


@dataclass(frozen=True)
class _Data:
    """The photos of a side as they are trained or tested with."""

    photos: Photos
    images: torch.Tensor  # bytes [n, channels, h, w]

    @property
    def classes(self) -> torch.Tensor:
        return torch.tensor(self.photos.classes)


def _read(photos: Photos, what: str, size: int, channels: int, resize: int, skip: bool) -> _Data:
    images, good = photos_of.read(photos, what, size, channels, resize)
    photos_of.check_all_read(len(good), len(photos.files), skip)
    readable = photos.part(good)
    for label, n in photos.counts().items():
        if n > 0 and readable.counts()[label] == 0:
            raise PhotosError(f"{label}: none of its photos can be read")
    return _Data(readable, images)


def _apart(args: argparse.Namespace, recipe: ClassifierRecipe, size: int) -> tuple[_Data, Photos]:
    """The photos to train with, larger than the input by its margin, and those of the test."""
    square = recipe.resize(size) or size
    everything = _read(
        photos_of.find(args.photos), "reading", square, recipe.channels, recipe.resize(size), args.skip_broken
    )
    counts = ", ".join(f"{label} {n}" for label, n in everything.photos.counts().items())
    say(f"{len(everything.photos.files)} photos: {counts}")
    groups = photos_of.near_duplicates(everything.images)
    alike = len(groups) - len(set(groups))
    _warn_of_classes(everything.photos, groups)
    if args.test_photos is None:
        train, test = photos_of.split(everything.photos, groups, args.test, args.seed)
        apart = everything.photos.part(test)
        say(f"{len(train)} for training, {len(test)} for testing, {alike} near duplicates kept together")
        return _Data(everything.photos.part(train), everything.images[train]), apart
    apart = photos_of.find(args.test_photos, everything.photos.labels)
    say(f"{len(everything.photos.files)} for training, {len(apart.files)} for testing")
    return everything, apart


def _warn_of_classes(photos: Photos, groups: Sequence[int]) -> None:
    first: dict[int, int] = {}
    told = 0
    for i, group in enumerate(groups):
        j = first.setdefault(group, i)
        if photos.classes[i] != photos.classes[j]:
            told += 1
            if told <= 5:
                say(f"nearly the same photo in two classes: {photos.files[j]} and {photos.files[i]}")
    if told > 5:
        say(f"… and {told - 5} more")


def _epochs(recipe: Recipe, photos: int) -> int:
    """Fewer photos are passed over more often: by the square root of their number."""
    return max(10, min(200, round(recipe.epochs * math.sqrt(3000 / photos))))


def _network(recipe: ClassifierRecipe, binary: bool, data: _Data, size: int, seed: int) -> Network:
    torch.manual_seed(seed)
    net = recipe.build(binary, len(data.photos.labels), size)
    start = getattr(net.input, "start", None)
    if start is not None:
        start(data.images)
    return net


def _train(
    args: argparse.Namespace, recipe: ClassifierRecipe, size: int, data: _Data, folder: Path, log: loop.Log
) -> Network:
    """The binary network, trained on the answers of a real one."""
    epochs = args.epochs or _epochs(recipe, len(data.photos.files))
    digest = hashlib.sha256(data.images.numpy().tobytes() + bytes(repr(data.photos.classes), "ascii")).hexdigest()

    def settings(binary: bool, epochs: int) -> loop.Settings:
        return loop.Settings(
            network=args.network,
            binary=binary,
            labels=data.photos.labels,
            size=size,
            epochs=epochs,
            batch=args.batch or recipe.batch,
            learning_rate=args.learning_rate or recipe.learning_rate,
            mirror=args.mirror,
            seed=args.seed,
            threads=torch.get_num_threads(),
            device=args.device,
            photos=digest,
        )

    loss: loop.Loss = loop.labels_loss
    if not args.no_teacher:
        teacher = _network(recipe, False, data, size, args.seed)
        few = max(1, epochs // 2)
        mine = settings(False, few)
        task = loop.Classification(recipe, mine, data.images, data.classes, loss)
        loop.train(teacher, task, mine, folder / "teacher.pt", log)
        loss = loop.Distillation(teacher)
    net = _network(recipe, True, data, size, args.seed + 1)
    checkpoint = folder / ("network.pt" if args.no_teacher else "distilled.pt")
    mine = settings(True, epochs)
    task = loop.Classification(recipe, mine, data.images, data.classes, loss)
    loop.train(net, task, mine, checkpoint, log)
    return net


def _finish(
    args: argparse.Namespace,
    recipe: ClassifierRecipe,
    size: int,
    net: Network,
    apart: Photos,
    folder: Path,
    log: loop.Log,
) -> int:
    """Writes the model, and measures it with the runtime on what was kept apart."""
    net = net.cpu()
    resize = recipe.resize(size)
    convert(
        net.onnx(recipe.channels, size),
        args.out,
        name=args.out.stem,
        labels=apart.labels,
        resize=resize,
        input_dtype="uint8",
    )
    # As the runtime crops and resizes them.
    test = _read(apart, "test", size, recipe.channels, resize, args.skip_broken)
    with load(args.out, device="cpu", max_batch=64) as model:
        comparison, logits = report.compare(net, model, test.images, size)
    answers = logits.argmax(1)
    matrix = report.confusion(answers, test.classes, len(apart.labels))
    accuracy = report.Accuracy(int(matrix.trace()), len(answers))
    log(f"accuracy on {accuracy.of} held-out photos: {accuracy}")
    for i, label in enumerate(apart.labels):
        of = int(matrix[i].sum())
        wrong = matrix[i].clone()
        wrong[i] = 0
        most = f", most often taken for {apart.labels[int(wrong.argmax())]}" if int(wrong.sum()) else ""
        if of:
            log(f"  {label}: {report.Accuracy(int(matrix[i, i]), of)}{most}")
    report.draw(matrix, apart.labels, f"{args.out.stem}: {accuracy} of {accuracy.of}", folder / "confusion.png")
    result = {
        "network": args.network,
        "size": size,
        "resize": resize,
        "labels": apart.labels,
        "test": accuracy.of,
        "right": accuracy.right,
        "percent": accuracy.percent,
        "interval": accuracy.interval,
        "confusion": matrix.tolist(),
        "test_photos": [str(f) for f in test.photos.files],
        "answers": answers.tolist(),
    }
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    same = comparison.images - len(comparison.different)
    log(f"runtime and PyTorch agree on {same} of {comparison.images} photos,")
    log(f"and outputs differ by at most {comparison.difference:.1e} of the largest")
    for i in comparison.different[:5]:
        log(f"  different answer: {test.photos.files[i]}")
    log(f"{args.out}: {args.out.stat().st_size} bytes; see {folder / 'confusion.png'} for the confusion matrix")
    return 0 if comparison.ok else 1


def _checked(
    parser: argparse.ArgumentParser, args: argparse.Namespace
) -> tuple[ClassifierRecipe | DetectorRecipe, int]:
    recipe = RECIPES.get(args.network) or DETECTORS[args.network]
    size = args.size or recipe.size
    if size < recipe.least or size % recipe.step or size > 1024:
        parser.error(f"--size {size}: {args.network} takes {recipe.least} to 1024, in steps of {recipe.step}")
    if args.out.suffix != ".bcnn":
        parser.error(f"-o {args.out}: the name must end in .bcnn")
    if not args.out.parent.is_dir():
        parser.error(f"-o {args.out}: there is no folder {args.out.parent}")
    boxes = {"--annotations": args.annotations, "--test-annotations": args.test_annotations, "--labels": args.labels}
    for option, value in boxes.items():
        if value is not None and isinstance(recipe, ClassifierRecipe):
            parser.error(f"{option} {value}: it is for detectors, and {args.network} is not one")
    if args.test_annotations is not None and args.test_photos is None:
        parser.error(f"--test-annotations {args.test_annotations}: there are no --test-photos")
    try:
        torch.empty(1, device=args.device)
    except (RuntimeError, AssertionError) as e:
        parser.error(f"--device {args.device}: {str(e).splitlines()[0]}")
    return recipe, size


def _detector(args: argparse.Namespace, recipe: DetectorRecipe, size: int, folder: Path) -> int:
    data, test = detect.apart(args, recipe, size)
    folder.mkdir(exist_ok=True)
    with loop.alone(folder):
        log = loop.Log(folder / "log.txt")
        epochs = args.epochs or _epochs(recipe, len(data.images))
        net = detect.train(args, recipe, size, data, epochs, folder, log)
        return detect.finish(args, recipe, size, net, test, folder, log)


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, and returns the exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    recipe, size = _checked(parser, args)
    if args.threads:
        torch.set_num_threads(args.threads)
    folder = args.out.with_suffix(".training")
    try:
        if isinstance(recipe, DetectorRecipe):
            return _detector(args, recipe, size, folder)
        data, apart = _apart(args, recipe, size)
        folder.mkdir(exist_ok=True)
        with loop.alone(folder):
            log = loop.Log(folder / "log.txt")
            net = _train(args, recipe, size, data, folder, log)
            return _finish(args, recipe, size, net, apart, folder, log)
    except (PhotosError, loop.SettingsError, OSError) as e:
        print(escape(f"bitcnn.train: {e}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(escape(f"stopped; repeat the command to resume from the last epoch in {folder}{os.sep}"), file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
