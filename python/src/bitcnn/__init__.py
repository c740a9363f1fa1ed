"""Binary convolutional neural networks: weights and activations are ±1, one bit each.

>>> import bitcnn, numpy as np
>>> model = bitcnn.load("digits")
>>> model(np.zeros((28, 28, 1), np.uint8)).shape
(10,)
"""

from ._boxes import Box
from ._classes import Class
from ._image import read_image
from ._library import version as _version
from ._load import convert, load
from ._model import Device, Model, TensorInfo, bundled, devices
from ._table import Table

__all__ = [
    "Box",
    "Class",
    "Device",
    "Model",
    "Table",
    "TensorInfo",
    "bundled",
    "convert",
    "devices",
    "load",
    "read_image",
    "version",
]

__version__ = "0.1.0.dev0"  # of the package


def version() -> str:
    """The version of the runtime."""
    return _version()
