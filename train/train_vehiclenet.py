#!/usr/bin/env python3
"""Trains VehicleNet."""

import argparse

import torch

import checkpoint
import dataset
import training
from vehiclenet import SCHEMES, SIZE, VehicleNet


def distort(images):
    """A random view of each photo. Never mirrored: one camera sees nearly
    all vehicles from the same side. The wide ranges of size, sharpness and
    light are for other days than those of the training photos."""
    x = dataset.random_affine(images.float(), SIZE, rotation=0.06, zoom=(0.93, 1.2), shift=4)
    x = dataset.random_sharpness(x, -0.6, 1.0)
    x = dataset.random_light(x, contrast=1.35, brightness=30)
    return dataset.to_bytes(x)


def prepare(images):
    return dataset.centre_crop(images, SIZE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    training.add_arguments(parser)
    parser.add_argument("--scheme", choices=SCHEMES, required=True)
    parser.add_argument("--teacher", help="checkpoint of a network to distil from")
    parser.add_argument("--learn-thresholds", action="store_true", help="train T of the schemes rgb and grey")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    train_set = dataset.read_images(args.train_images, args.train_labels)
    val_set = dataset.read_images(args.val_images, args.val_labels)

    net = VehicleNet(args.scheme)
    if args.scheme in ("rgb", "grey"):
        net.input.start_at_mean(prepare(train_set[0]))
        net.input.threshold.requires_grad_(args.learn_thresholds)
    if args.init:
        net.load_state_dict(checkpoint.load(args.init).state_dict())
    loss = training.hard_loss
    if args.teacher:
        loss = training.Distillation(checkpoint.load(args.teacher))
    training.train(net, args, train_set, val_set, distort, prepare, loss)


if __name__ == "__main__":
    main()
