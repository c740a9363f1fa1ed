"""VehicleNet: two binary convolutions and three binary dense layers on a
96x96 photo, with a choice of input schemes, and its full-precision twin."""

import torch
import torch.nn.functional as F
from torch import nn

from bcnn_layers import BinaryConv2d, BinaryLayer, BinaryLinear, GreyThreshold, LocalBinaryPattern, RGBThreshold
from bcnn_layers import ScaledInput, Sign

SIZE = 96
PHOTO_SIZE = 100  # photos are resized to this and cropped to SIZE
LABELS = ["bike", "car", "juggernaut", "minibus", "pickup", "truck"]
SCHEMES = {
    "float": ScaledInput,
    "none": ScaledInput,
    "rgb": RGBThreshold,
    "grey": GreyThreshold,
    "lbp": LocalBinaryPattern,
}
CHANNELS = 32
HIDDEN = 100
FLAT = CHANNELS * (SIZE // 4) ** 2


class VehicleNet(nn.Module):
    """Scheme "float" has real weights and ReLU, every other one weights and
    activations of +-1. Pooling comes before batch norm, on the sums."""

    def __init__(self, scheme, classes=len(LABELS)):
        super().__init__()
        self.scheme = scheme
        self.input = SCHEMES[scheme]()
        channels = self.input.out_channels
        if scheme == "float":
            self.activation = nn.ReLU()
            self.conv1 = nn.Conv2d(channels, CHANNELS, 5, padding=2, bias=False)
            self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 5, padding=2, bias=False)
            self.dense1 = nn.Linear(FLAT, HIDDEN, bias=False)
            self.dense2 = nn.Linear(HIDDEN, HIDDEN, bias=False)
            self.dense3 = nn.Linear(HIDDEN, classes, bias=False)
            for layer in (self.conv1, self.conv2, self.dense1, self.dense2, self.dense3):
                nn.init.xavier_uniform_(layer.weight)
        else:
            self.activation = Sign()
            first_padding = -1 if self.input.binary else 0
            self.conv1 = BinaryConv2d(channels, CHANNELS, 5, padding=2, padding_value=first_padding)
            self.conv2 = BinaryConv2d(CHANNELS, CHANNELS, 5, padding=2, padding_value=-1)
            self.dense1 = BinaryLinear(FLAT, HIDDEN)
            self.dense2 = BinaryLinear(HIDDEN, HIDDEN)
            self.dense3 = BinaryLinear(HIDDEN, classes)
        # A small momentum: batches are small, and the statistics of sums of
        # +-1 move slowly.
        self.norm1 = nn.BatchNorm2d(CHANNELS, momentum=0.03)
        self.norm2 = nn.BatchNorm2d(CHANNELS, momentum=0.03)
        self.norm3 = nn.BatchNorm1d(HIDDEN, momentum=0.03)
        self.norm4 = nn.BatchNorm1d(HIDDEN, momentum=0.03)
        self.norm5 = nn.BatchNorm1d(classes, momentum=0.03)

    def forward(self, image):
        """Logits [N, classes] of images [N, 3, 96, 96] of values 0..255."""
        x = self.input(image)
        if not torch.onnx.is_in_onnx_export():
            x = x.contiguous(memory_format=torch.channels_last)  # twice as fast on a CPU
        x = self.activation(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        x = self.activation(self.norm2(F.max_pool2d(self.conv2(x), 2)))
        x = x.flatten(1)
        x = self.activation(self.norm3(self.dense1(x)))
        x = self.activation(self.norm4(self.dense2(x)))
        return self.norm5(self.dense3(x))

    def binary_layers(self):
        """The layers with +-1 weights."""
        return [m for m in self.modules() if isinstance(m, BinaryLayer)]

    def describe(self):
        """What a checkpoint needs to build this network again."""
        return {"kind": "vehiclenet", "scheme": self.scheme}
