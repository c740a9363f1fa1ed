#!/usr/bin/env python3
"""Trains DigitsNet on MNIST."""

import argparse

import torch

import checkpoint
import dataset
import training
from digitsnet import SIZE, DigitsNet


def distort(images):
    """A random view of each digit."""
    return dataset.to_bytes(dataset.random_affine(images.float(), SIZE, rotation=0.15, zoom=(0.9, 1.1), shift=1.5))


def prepare(images):
    return dataset.centre_crop(images, SIZE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    training.add_arguments(parser)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    net = DigitsNet()
    if args.init:
        net.load_state_dict(checkpoint.load(args.init).state_dict())
    train_set = dataset.read_images(args.train_images, args.train_labels)
    val_set = dataset.read_images(args.val_images, args.val_labels)
    training.train(net, args, train_set, val_set, distort, prepare)


if __name__ == "__main__":
    main()
