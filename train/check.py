#!/usr/bin/env python3
"""Compares the runtime with PyTorch on images, logit by logit.

The PyTorch network runs in float64, where every sum of a binary layer is an
exact integer and rounding cannot move a value across a threshold. The runtime
gets the same pixels as PNG files. For a binary network, the integer sums of
the last layer are recovered from the runtime's logits by inverting the last
batch norm; they must be equal exactly. Logits may differ by the rounding of
float32. Exits with 1 if anything differs.
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import torch

import checkpoint
import dataset
import digitsnet
import vehiclenet

BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "bin", "bcnn")


def write_png(path, image):
    """Writes a uint8 image [C, H, W] of one or three channels as PNG."""
    channels, height, width = image.shape
    rows = image.permute(1, 2, 0).reshape(height, width * channels).numpy()
    # Each row starts with the number of its filter: 0, none.
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    colour = {1: 0, 3: 2}[channels]

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(raw, 1)))
        file.write(chunk(b"IEND", b""))


def runtime_logits(command, images):
    """Logits and label indices that the runtime gives for uint8 images."""
    logits, indices = [], []
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, image in enumerate(images):
            paths.append(os.path.join(folder, f"{i:05d}.png"))
            write_png(paths[-1], image)
        for i in range(0, len(paths), 500):
            batch = paths[i : i + 500]
            answer = subprocess.run(command + batch, stdout=subprocess.PIPE)
            if answer.returncode:  # it has said why
                raise SystemExit(f"{command[0]} ended with {answer.returncode}")
            lines = [json.loads(line) for line in answer.stdout.splitlines()]
            if [line["file"] for line in lines] != batch:
                raise SystemExit("the runtime's answers are not one line for each file, in order")
            logits += [line["logits"] for line in lines]
            indices += [line["index"] for line in lines]
    return torch.tensor(logits, dtype=torch.float64), torch.tensor(indices)


def exact_logits(net, images):
    """The logits of the network in float64, and the inputs of its last
    batch norm."""
    net = net.double()
    sums = []
    last_norm(net).register_forward_pre_hook(lambda module, inputs: sums.append(inputs[0]))
    with torch.no_grad():
        logits = [net(images[i : i + 60].double()) for i in range(0, len(images), 60)]
    return torch.cat(logits), torch.cat(sums)


def last_norm(net):
    return [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm1d)][-1]


def scale_and_bias(norm):
    """The batch norm as logit = scale * sum + bias."""
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return scale.detach(), (norm.bias - norm.running_mean * scale).detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bcnn", default=BUILT, help="the runtime's command (default bin/bcnn of the repository, or of the PATH)")
    parser.add_argument("--device", help="the runtime's device, such as cpu or cuda:0")
    parser.add_argument("--model", required=True, help=".bcnn file made from the checkpoint")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--images", required=True, help="IDX file")
    parser.add_argument("--labels", required=True, help="IDX file")
    parser.add_argument("--limit", type=int, help="number of images, spread over the file")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-6,
        help="largest difference of logits, relative to the terms they are summed from; "
        "the float network needs 1e-4, since its sums round differently",
    )
    args = parser.parse_args()
    if args.bcnn == BUILT and not os.path.exists(BUILT):
        args.bcnn = "bcnn"
    if not shutil.which(args.bcnn):
        parser.error(f"there is no {args.bcnn}: 'make' builds bin/bcnn, and --bcnn names another")

    torch.set_num_threads(1)
    net = checkpoint.load(args.checkpoint)
    size = digitsnet.SIZE if isinstance(net, digitsnet.DigitsNet) else vehiclenet.SIZE
    images, labels = dataset.read_images(args.images, args.labels)
    if args.limit and args.limit < len(images):
        chosen = torch.linspace(0, len(images) - 1, args.limit).long()
        images, labels = images[chosen], labels[chosen]
    images = dataset.centre_crop(images, size).to(torch.uint8)

    command = [args.bcnn, "classify", "--model", args.model, "--json"]
    if args.device:
        command += ["--device", args.device]
    got, got_index = runtime_logits(command, images)
    want, sums = exact_logits(net, images)
    scale, bias = scale_and_bias(last_norm(net))

    same_label = (got_index == want.argmax(1)).sum().item()
    magnitude = (scale * sums).abs() + bias.abs()
    difference = ((got - want).abs() / magnitude).max().item()
    ok = same_label == len(images) and difference <= args.tolerance
    print(f"images          {len(images)}")
    print(f"accuracy        {100 * (want.argmax(1) == labels).double().mean().item():.2f} % PyTorch, ", end="")
    print(f"{100 * (got_index == labels).double().mean().item():.2f} % runtime")
    print(f"labels equal    {same_label} of {len(images)}")
    if net.binary_layers():
        same_sums = (torch.round((got - bias) / scale) == sums).sum().item()
        ok = ok and same_sums == sums.numel()
        print(f"sums equal      {same_sums} of {sums.numel()}")
    print(f"logits differ   at most {difference:.1e}, relative")
    print("OK" if ok else "DIFFERENT")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
