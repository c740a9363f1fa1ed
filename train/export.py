#!/usr/bin/env python3
"""Writes the network of a checkpoint as ONNX.

The graph reads bytes [batch, channels, height, width] named "image" and gives
"logits". Binary weights are +-1 constants, batch norms stay nodes of their
own, and the model's metadata carries the labels, the name and the size to
which photos are resized before the centre is cropped.
"""

import argparse
import json
import warnings

import torch
from torch.onnx import TrainingMode

import checkpoint
import digitsnet
import vehiclenet

# The last version whose Pad has its sizes and value as attributes.
OPSET = 9


def varint(value):
    """A protocol buffer's variable-length integer."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def bytes_field(number, content):
    """A protocol buffer's length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def metadata(entries):
    """ModelProto.metadata_props (field 14) for a dictionary of strings.
    Appended to a serialised ModelProto it becomes part of the message."""
    return b"".join(
        bytes_field(14, bytes_field(1, key.encode()) + bytes_field(2, value.encode()))
        for key, value in entries.items()
    )


def describe(net):
    """An example image and the metadata of a network."""
    if isinstance(net, digitsnet.DigitsNet):
        shape = (1, 1, digitsnet.SIZE, digitsnet.SIZE)
        return shape, {"name": "digits", "labels": json.dumps(digitsnet.LABELS)}
    shape = (1, 3, vehiclenet.SIZE, vehiclenet.SIZE)
    name = "vehiclenet" if net.scheme == "none" else "vehiclenet-" + net.scheme
    return shape, {
        "name": name,
        "labels": json.dumps(vehiclenet.LABELS),
        "resize": str(vehiclenet.PHOTO_SIZE),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("onnx")
    args = parser.parse_args()

    net = checkpoint.load(args.checkpoint)
    for module in net.modules():
        if hasattr(module, "freeze"):
            module.freeze()
    shape, entries = describe(net)
    example = torch.randint(0, 256, shape, dtype=torch.uint8)
    has_custom_node = getattr(net, "scheme", "") in ("grey", "lbp")
    # PyTorch's advice on networks in training mode and on the custom node.
    for message in ("It is recommended that constant folding", ".*_graph_op", "The shape inference of bitcnn::", "You are using the legacy"):
        warnings.filterwarnings("ignore", message=message)
    torch.onnx.export(
        net,
        example,
        args.onnx,
        # PRESERVE keeps the evaluation mode of the network without folding
        # batch norms into the weights, which must stay +-1.
        training=TrainingMode.PRESERVE,
        opset_version=OPSET,
        custom_opsets={"bitcnn": 1} if has_custom_node else None,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
        # The other exporter has no node of one's own that is written by a function.
        dynamo=False,
    )
    with open(args.onnx, "ab") as file:
        file.write(metadata(entries))


if __name__ == "__main__":
    main()
