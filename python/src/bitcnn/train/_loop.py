"""The training loop: schedule, distillation, checkpoints, the statistics of batch norms."""

from __future__ import annotations

import json
import math
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax
from tqdm import tqdm

from .._image import escape
from ..torch import BinaryLayer
from ._distort import centre, distort
from ._inputs import GreyThreshold, RGBThreshold
from ._networks import Recipe

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@dataclass(frozen=True)
class Settings:
    """What a training depends on: with the same settings it goes on where it was stopped."""

    network: str
    binary: bool
    labels: tuple[str, ...]
    size: int
    epochs: int
    batch: int
    learning_rate: float
    mirror: bool
    seed: int
    threads: int
    device: str
    photos: str  # a digest of the pixels that are trained with


class SettingsError(Exception):
    """A training cannot go on from what is in its folder."""


class Log:
    """Writes each message to the screen and to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, message: str) -> None:
        message = escape(message)
        tqdm.write(message)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(message + "\n")


class Distillation:
    """A loss that mixes the labels with the answers of a teacher (Hinton et al., 2015)."""

    def __init__(self, teacher: nn.Module, weight: float = 0.7, temperature: float = 3.0) -> None:
        self.teacher, self.weight, self.temperature = teacher.eval(), weight, temperature

    def __call__(self, logits: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        with torch.no_grad():
            answers = softmax(self.teacher(images) / self.temperature, 1)
        own = log_softmax(logits / self.temperature, 1)
        soft = kl_div(own, answers, reduction="batchmean") * self.temperature**2
        return (1 - self.weight) * labels_loss(logits, images, labels) + self.weight * soft


class Task(Protocol):
    """What a network is trained to do with images, bytes [n, channels, h, w]."""

    images: Tensor

    def views(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Distorted images of some indices, and what is to be known of them, on the device of the training."""
        ...

    def loss(self, outputs: Any, views: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of the outputs of a network, and what share of them is right."""
        ...


Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


class Classification:
    """To tell of which class an image is."""

    def __init__(self, recipe: Recipe, settings: Settings, images: Tensor, labels: Tensor, loss: Loss) -> None:
        self.recipe, self.settings, self.images, self.labels, self.loss_of = recipe, settings, images, labels, loss

    def views(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        device = self.settings.device
        x = distort(self.images[chosen].to(device), self.settings.size, self.recipe, self.settings.mirror)
        return x, self.labels[chosen].to(device)

    def loss(self, outputs: Tensor, views: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        return self.loss_of(outputs, views, known), (outputs.argmax(1) == known).float().mean()


def labels_loss(logits: Tensor, images: Tensor, labels: Tensor) -> Tensor:  # noqa: ARG001
    """Cross entropy with label smoothing."""
    return cross_entropy(logits, labels, label_smoothing=0.1)


def rate(step: int, steps: int) -> float:
    """The share of the learning rate at a step: 5 % of linear warm-up, times a cosine to 0."""
    warm_up = min(1.0, (step + 1) / (0.05 * steps + 1))
    return warm_up * 0.5 * (1 + math.cos(math.pi * step / steps))


def answers(net: nn.Module, images: Tensor, size: int, device: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """The logits of images, on the processor. Binary layers compute in floats, as in training."""
    net.eval()
    found = []
    for part in torch.split(images, 120):
        with torch.enable_grad():  # else binary layers use the runtime
            found.append(net(centre(part.to(device), size).to(dtype)).detach().cpu())
    return torch.cat(found)


def reestimate_norms(net: nn.Module, images: Tensor, size: int, device: str) -> None:
    """Measures the statistics of every batch norm on undistorted images: those of training
    belong to distorted ones, and to older weights.
    """
    norms: list[Any] = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over all batches
    net.train()
    with torch.no_grad():
        for part in torch.split(images[torch.randperm(len(images))], 120):
            if len(part) > 1:  # a batch of one has no variance
                net(centre(part.to(device), size))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    net.eval()


def _save(path: Path, content: dict[str, Any]) -> None:
    """Writes a checkpoint; a reader never sees half of one."""
    part = path.with_suffix(".part")
    torch.save(content, part)
    part.replace(path)


def _resume(checkpoint: Path, settings: str, net: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[int, float]:
    """Takes over a checkpoint. Returns how many epochs it has behind it, and their seconds."""
    again = f"remove {checkpoint.parent} to start over"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is refused anyway
            last = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if last["settings"] != settings:
            raise SettingsError(f"{checkpoint} is from other photos or settings; {again}")
        net.load_state_dict(last["weights"])
        optimiser.load_state_dict(last["optimiser"])
        torch.set_rng_state(last["random"])
        return int(last["epoch"]), float(last["seconds"])
    except SettingsError:
        raise
    except pickle.UnpicklingError as e:  # which tells how to run what is in the file
        raise SettingsError(f"{checkpoint} is not a checkpoint of this training (not weights alone); {again}") from e
    except Exception as e:  # whatever a broken file makes of the reader: it has no error of its own
        why = (str(e).splitlines() or [type(e).__name__])[0]
        raise SettingsError(f"{checkpoint} is not a checkpoint of this training ({why}); {again}") from e


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other trainings out of the folder. The system opens the lock when a process ends."""
    with (folder / "lock").open("ab") as file:
        try:
            if sys.platform == "win32":
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as e:  # as fcntl says it, and msvcrt
            raise SettingsError(f"another training is writing to {folder}; wait for it, or choose another -o") from e
        yield


def train(net: nn.Module, task: Task, settings: Settings, checkpoint: Path, log: Log) -> None:
    """Trains a network. After each epoch there is a checkpoint, from which the next call with the same
    settings goes on. The last epoch counts: no image for the test chooses anything.
    """
    images = task.images
    device, batch = settings.device, min(settings.batch, len(images))
    net.to(device)
    first = net.input
    thresholds = [first.threshold] if isinstance(first, RGBThreshold | GreyThreshold) else []
    optimiser = torch.optim.Adam(net.parameters(), lr=settings.learning_rate)
    per_epoch = max(1, len(images) // batch)
    steps = settings.epochs * per_epoch
    done, seconds = 0, 0.0
    mine = json.dumps(asdict(settings))
    if checkpoint.exists():
        done, seconds = _resume(checkpoint, mine, net, optimiser)
        if done < settings.epochs:
            log(f"resuming after epoch {done}")

    binary = [m for m in net.modules() if isinstance(m, BinaryLayer)]
    what = settings.network if settings.binary else f"teacher of {settings.network}"
    with tqdm(total=steps, initial=done * per_epoch, desc=what, unit=" batches", leave=False, disable=None) as bar:
        for epoch in range(done, settings.epochs):
            start = time.monotonic()
            net.train()
            for threshold in thresholds:  # first the weights for the mean, then both
                threshold.requires_grad_(2 * epoch >= settings.epochs)
            total, right = torch.zeros((), device=device), torch.zeros((), device=device)
            order = torch.randperm(len(images))
            for i in range(per_epoch):
                for group in optimiser.param_groups:
                    group["lr"] = settings.learning_rate * rate(epoch * per_epoch + i, steps)
                chosen = order[i * batch : (i + 1) * batch]
                x, known = task.views(chosen)
                loss, good = task.loss(net(x), x, known)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                for layer in binary:
                    layer.clip()
                total += loss.detach()
                right += good
                bar.update()
            if epoch + 1 == settings.epochs:
                reestimate_norms(net, images, settings.size, device)
            seconds += time.monotonic() - start
            share = 100 * float(right) / per_epoch
            loss_ = float(total) / per_epoch
            log(f"{what}, epoch {epoch + 1}/{settings.epochs}: loss {loss_:.3f}, training {share:.1f} %")
            content = {"settings": mine, "epoch": epoch + 1, "seconds": seconds, "weights": net.state_dict()}
            _save(checkpoint, {**content, "optimiser": optimiser.state_dict(), "random": torch.get_rng_state()})
    if done < settings.epochs:
        log(f"{what}: {seconds:.0f} s")
    net.eval()
