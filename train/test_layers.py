#!/usr/bin/env python3
"""Tests of the binary layers against plain definitions."""

import os
import tempfile
import unittest

import numpy as np
import torch

import bcnn_layers as layers
import dataset
import export
import training
from vehiclenet import SCHEMES, SIZE, VehicleNet


def random_bytes(*shape):
    return torch.randint(0, 256, shape).float()


class SignTest(unittest.TestCase):
    def test_rule_for_zero(self):
        x = torch.tensor([-2.0, -0.0, 0.0, 1e-30])
        self.assertEqual(layers.Sign()(x).tolist(), [-1, -1, -1, 1])

    def test_gradient_passes_within_one(self):
        x = torch.tensor([-1.5, -1.0, 0.0, 0.3, 1.0, 1.1], requires_grad=True)
        layers.Sign()(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [0, 1, 1, 1, 1, 0])


class InputTest(unittest.TestCase):
    def test_grey_is_the_integer_formula(self):
        x = random_bytes(2, 3, 64, 64)
        r, g, b = x.long().unbind(1)
        self.assertTrue(torch.equal(layers.grey(x)[:, 0].long(), (77 * r + 150 * g + 29 * b) >> 8))

    def test_grey_level_for_export(self):
        x = random_bytes(1, 3, 64, 64)
        for threshold in (-2.0, -1.7031, -1.703125, -0.5, 0.5):
            scheme = layers.GreyThreshold()
            with torch.no_grad():
                scheme.threshold.fill_(threshold)
            scheme.freeze()
            want = layers.signs(layers.grey(x) - scheme.levels[0], zero_is_positive=True)
            self.assertTrue(torch.equal(scheme(x), want))

    def test_local_binary_pattern(self):
        x = random_bytes(1, 3, 7, 6)
        bits = layers.LocalBinaryPattern()(x)
        level = layers.grey(x)[0, 0].tolist()
        for channel, (dy, dx) in enumerate([(-1, -1), (0, 1), (1, -1)]):
            for y in range(7):
                for column in range(6):
                    neighbour = level[min(max(y + dy, 0), 6)][min(max(column + dx, 0), 5)]
                    want = 1 if neighbour > level[y][column] else -1
                    self.assertEqual(bits[0, channel, y, column].item(), want)


class DatasetTest(unittest.TestCase):
    def test_idx(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.idx")
            with open(path, "wb") as file:
                file.write(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
            self.assertTrue(np.array_equal(dataset.read_idx(path), [[1, 2, 3], [4, 5, 6]]))

    def test_affine_without_distortion_is_the_centre_crop(self):
        x = random_bytes(2, 3, 100, 100)
        y = dataset.to_bytes(dataset.random_affine(x, 96, rotation=0, zoom=(1, 1), shift=0))
        self.assertTrue(torch.equal(y, dataset.centre_crop(x, 96)))


class ExportTest(unittest.TestCase):
    def test_metadata_bytes(self):
        # Field 14, length 7: field 1 "a", field 2 "bc".
        self.assertEqual(export.metadata({"a": "bc"}), b"\x72\x07\x0a\x01a\x12\x02bc")
        self.assertEqual(export.varint(300), b"\xac\x02")


class NetworkTest(unittest.TestCase):
    def test_every_scheme_learns(self):
        for scheme in SCHEMES:
            torch.manual_seed(0)
            net = VehicleNet(scheme)
            loss = training.hard_loss(net(random_bytes(4, 3, SIZE, SIZE)), None, torch.tensor([0, 1, 2, 3]))
            loss.backward()
            # LBP has no parameter before the first convolution.
            for name, parameter in net.named_parameters():
                self.assertGreater(parameter.grad.abs().sum().item(), 0, f"{scheme}: {name}")


if __name__ == "__main__":
    unittest.main()
