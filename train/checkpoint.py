"""Builds networks from checkpoints."""

import torch

from digitsnet import DigitsNet
from vehiclenet import VehicleNet


def load(path):
    """The network of a checkpoint, in evaluation mode."""
    checkpoint = torch.load(path, map_location="cpu")
    description = checkpoint["net"]
    if description["kind"] == "vehiclenet":
        net = VehicleNet(description["scheme"])
    elif description["kind"] == "digits":
        net = DigitsNet()
    else:
        raise ValueError(f"{path}: unknown network {description['kind']!r}")
    net.load_state_dict(checkpoint["weights"])
    return net.eval()
