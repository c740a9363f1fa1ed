"""The training loop that the networks share."""

import json
import math
import os
import sys
import time

import torch
import torch.nn.functional as F


class Progress:
    """One line on a terminal that shows how far an epoch is; silent when
    the output is a file."""

    def __init__(self, title, total):
        self.title = title
        self.total = total
        self.shown = sys.stderr.isatty()
        self.start = time.time()

    def update(self, done):
        if self.shown:
            width = 30 * done // self.total
            elapsed = time.time() - self.start
            left = elapsed / done * (self.total - done)
            bar = "#" * width + "." * (30 - width)
            print(f"\r{self.title} [{bar}] {done}/{self.total}, {left:.0f} s left ", end="", file=sys.stderr)

    def close(self):
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr)


def add_arguments(parser):
    """The options of every training script."""
    parser.add_argument("--train-images", required=True, help="IDX file")
    parser.add_argument("--train-labels", required=True, help="IDX file")
    parser.add_argument("--val-images", required=True, help="IDX file, used for measurement only")
    parser.add_argument("--val-labels", required=True, help="IDX file")
    parser.add_argument("--out", required=True, help="folder for checkpoints and the log")
    parser.add_argument("--init", help="checkpoint to take the first weights from")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--val-every", type=int, default=10, help="epochs between two validations")


def accuracy(net, prepare, images, labels):
    """Percentage of images whose label the network gives."""
    net.eval()
    correct = 0
    with torch.no_grad():
        for i in range(0, len(images), 120):
            logits = net(prepare(images[i : i + 120]))
            correct += (logits.argmax(1) == labels[i : i + 120]).sum().item()
    return 100 * correct / len(images)


def reestimate_norms(net, prepare, images):
    """Measures the statistics of every batch norm on undistorted images:
    those of training belong to distorted ones and to older weights."""
    norms = [m for m in net.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over all batches
    net.train()
    order = torch.randperm(len(images))
    with torch.no_grad():
        for i in range(0, len(images), 120):
            net(prepare(images[order[i : i + 120]]))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    net.eval()


def rate(step, steps):
    """Share of the learning rate at a step: 5 % linear warm-up times a
    cosine to 0."""
    warm_up = min(1, (step + 1) / (0.05 * steps + 1))
    return warm_up * 0.5 * (1 + math.cos(math.pi * step / steps))


def hard_loss(logits, images, labels):
    """Cross entropy with label smoothing."""
    return F.cross_entropy(logits, labels, label_smoothing=0.1)


class Distillation:
    """Loss that mixes the labels with the answers of a teacher."""

    def __init__(self, teacher, weight=0.7, temperature=3.0):
        self.teacher = teacher.eval()
        self.weight = weight
        self.temperature = temperature

    def __call__(self, logits, images, labels):
        with torch.no_grad():
            answers = F.softmax(self.teacher(images) / self.temperature, 1)
        own = F.log_softmax(logits / self.temperature, 1)
        soft = F.kl_div(own, answers, reduction="batchmean") * self.temperature**2
        return (1 - self.weight) * hard_loss(logits, images, labels) + self.weight * soft


class Log:
    """Writes each message to the screen and to a file."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "log.txt"), "a", encoding="utf-8")

    def __call__(self, message):
        print(message, flush=True)
        print(message, file=self.file, flush=True)


def save(path, net, **more):
    """Writes a checkpoint; a reader never sees half of one."""
    torch.save({"net": net.describe(), "weights": net.state_dict(), **more}, path + ".part")
    os.replace(path + ".part", path)


def train(net, args, train_set, val_set, distort, prepare, loss_function=hard_loss):
    """Trains net and writes into args.out: log.txt, last.pt after each
    epoch (a later run with the same arguments goes on from there), final.pt
    and result.json. The last epoch counts: validation chooses nothing."""
    log = Log(args.out)
    images, labels = train_set
    parameters = [p for p in net.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=args.learning_rate)
    steps_per_epoch = len(images) // args.batch
    steps = args.epochs * steps_per_epoch
    first_epoch, seconds = 0, 0.0

    settings = {k: v for k, v in vars(args).items() if k != "out"}
    last_path = os.path.join(args.out, "last.pt")
    if os.path.exists(last_path):
        last = torch.load(last_path)
        if last["settings"] != settings:
            raise SystemExit(f"{last_path} belongs to other settings: {last['settings']}")
        net.load_state_dict(last["weights"])
        optimiser.load_state_dict(last["optimiser"])
        torch.set_rng_state(last["random"])
        first_epoch, seconds = last["epoch"], last["seconds"]
        log(f"resumed after epoch {first_epoch}")
    else:
        log(json.dumps(settings))

    for epoch in range(first_epoch, args.epochs):
        start = time.time()
        net.train()
        total_loss, correct = 0.0, 0
        order = torch.randperm(len(images))
        progress = Progress(f"epoch {epoch + 1}/{args.epochs}", steps_per_epoch)
        for i in range(steps_per_epoch):
            for group in optimiser.param_groups:
                group["lr"] = args.learning_rate * rate(epoch * steps_per_epoch + i, steps)
            batch = order[i * args.batch : (i + 1) * args.batch]
            x, y = distort(images[batch]), labels[batch]
            logits = net(x)
            loss = loss_function(logits, x, y)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            for layer in net.binary_layers():
                layer.clip()
            total_loss += loss.item()
            correct += (logits.argmax(1) == y).sum().item()
            progress.update(i + 1)
        progress.close()
        seconds += time.time() - start
        message = (
            f"epoch {epoch + 1}/{args.epochs}, {time.time() - start:.1f} s, loss {total_loss / steps_per_epoch:.3f}, "
            f"training {100 * correct / (steps_per_epoch * args.batch):.1f} %"
        )
        if (epoch + 1) % args.val_every == 0:
            message += f", validation {accuracy(net, prepare, *val_set):.2f} %"
        log(message)
        save(
            last_path,
            net,
            epoch=epoch + 1,
            seconds=seconds,
            settings=settings,
            optimiser=optimiser.state_dict(),
            random=torch.get_rng_state(),
        )

    reestimate_norms(net, prepare, images)
    result = {
        **net.describe(),
        "validation": round(accuracy(net, prepare, *val_set), 2),
        "training": round(accuracy(net, prepare, images, labels), 2),
        "epochs": args.epochs,
        "seed": args.seed,
        "seconds": round(seconds),
    }
    save(os.path.join(args.out, "final.pt"), net, settings=settings, result=result)
    with open(os.path.join(args.out, "result.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    log(json.dumps(result))
