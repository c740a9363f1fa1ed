#!/usr/bin/env python3
"""Write vision/testdata/detectors: small networks that end as YOLOX and YOLOv8 do, as PyTorch exports them.

Each is written by both exporters, NAME.old.onnx and NAME.dynamo.onnx; "decoded" is YOLOX with its decoder in
the graph, and the older file of "yolov8" leaves its size open and has the metadata of Ultralytics' exporter.
detectors.npz has a photo of the input's size, and for each network the boxes that a decoder and
non-maximum suppression in float64 find on it: class, score, left, top, right and bottom.

Needs torch, onnx and onnxscript.
"""

import argparse
import io
import pathlib
import warnings

import numpy as np
import onnx
import torch
from torch import nn

warnings.filterwarnings("ignore")
HEIGHT, WIDTH, STRIDES, CLASSES, BINS, THRESHOLD = 64, 96, (8, 16), 3, 16, 0.25


class Features(nn.Module):
    """Maps of two strides."""

    def __init__(self):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 8, 8, 8), nn.Conv2d(8, 8, 2, 2)

    def forward(self, x):
        fine = nn.functional.silu(self.fine(x))
        return fine, nn.functional.silu(self.coarse(fine))


class YOLOX(nn.Module):
    """Its head, which gives maps that are flattened and joined, or if decoded the boxes of cells."""

    def __init__(self, decoded=False):
        super().__init__()
        self.features, self.decoded = Features(), decoded
        self.boxes, self.objects, self.classes = (
            nn.ModuleList(nn.Conv2d(8, n, 1) for _ in STRIDES) for n in (4, 1, CLASSES)
        )

    def maps(self, x):
        return [
            torch.cat([b(f), o(f).sigmoid(), c(f).sigmoid()], 1)
            for f, b, o, c in zip(self.features(x), self.boxes, self.objects, self.classes, strict=True)
        ]

    def forward(self, x):
        maps = self.maps(x)
        y = torch.cat([m.flatten(start_dim=2) for m in maps], dim=2).permute(0, 2, 1)
        if not self.decoded:
            return y
        grids, strides = zip(*(grid(m, s) for m, s in zip(maps, STRIDES, strict=True)), strict=True)
        grids, strides = torch.cat(grids, 1).type(y.dtype), torch.cat(strides, 1).type(y.dtype)
        return torch.cat([(y[..., 0:2] + grids) * strides, torch.exp(y[..., 2:4]) * strides, y[..., 4:]], dim=-1)

    def decode(self, maps):
        """Centres, sizes and scores."""
        for m, stride in zip(maps, STRIDES, strict=True):
            v = m[0].flatten(1).T
            cells, _ = grid(m, stride)
            yield (v[:, :2] + cells[0]) * stride, v[:, 2:4].exp() * stride, v[:, 4:5] * v[:, 5:]


def grid(m, stride):
    """The columns and rows of the cells of a map, and its stride for each."""
    h, w = m.shape[-2:]
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    cells = torch.stack((x, y), 2).view(1, -1, 2)
    return cells, torch.full((1, h * w, 1), stride)


class YOLOv8(nn.Module):
    """Its head: distances as distributions over 16 values, and classes."""

    def __init__(self):
        super().__init__()
        self.features = Features()
        self.boxes, self.classes = (nn.ModuleList(nn.Conv2d(8, n, 1) for _ in STRIDES) for n in (4 * BINS, CLASSES))

    def maps(self, x):
        return [torch.cat([b(f), c(f)], 1) for f, b, c in zip(self.features(x), self.boxes, self.classes, strict=True)]

    def forward(self, x):
        maps = self.maps(x)
        cells, strides = zip(*(grid(m, s) for m, s in zip(maps, STRIDES, strict=True)), strict=True)
        anchors = torch.cat(cells, 1).transpose(1, 2).type(x.dtype) + 0.5
        strides = torch.cat(strides, 1).transpose(1, 2).type(x.dtype)
        y = torch.cat([m.view(m.shape[0], 4 * BINS + CLASSES, -1) for m in maps], 2)
        box, cls = y.split((4 * BINS, CLASSES), 1)
        n, _, a = box.shape
        weights = torch.arange(BINS, dtype=x.dtype).view(1, BINS, 1, 1)
        box = nn.functional.conv2d(box.view(n, 4, BINS, a).transpose(2, 1).softmax(1), weights).view(n, 4, a)
        low, high = box.chunk(2, 1)
        x1y1, x2y2 = anchors - low, anchors + high
        return torch.cat([torch.cat([(x1y1 + x2y2) / 2, x2y2 - x1y1], 1) * strides, cls.sigmoid()], 1)

    def decode(self, maps):
        for m, stride in zip(maps, STRIDES, strict=True):
            v = m[0].flatten(1).T
            cells, _ = grid(m, stride)
            d = (v[:, : 4 * BINS].view(-1, 4, BINS).softmax(2) * torch.arange(BINS)).sum(2)
            low, high = cells[0] + 0.5 - d[:, :2], cells[0] + 0.5 + d[:, 2:]
            yield (low + high) / 2 * stride, (high - low) * stride, v[:, 4 * BINS :].sigmoid()


def suppressed(boxes, scores, overlap):
    """Rows of class, score and edges of the boxes above the threshold, the best first, of which none overlaps a
    better one of its class by more than that.
    """
    rows = []
    for i, c in sorted(zip(*np.nonzero(scores > THRESHOLD), strict=True), key=lambda k: -scores[k]):
        b, area = boxes[i], lambda e: (e[2] - e[0]) * (e[3] - e[1])
        for k in rows:
            both = np.prod((np.minimum(k[4:], b[2:]) - np.maximum(k[2:4], b[:2])).clip(0))
            if k[0] == c and both / (area(k[2:]) + area(b) - both) > overlap:
                break
        else:
            rows.append(np.array([c, scores[i, c], *b]))
    rows = [np.array([*r[:2], *np.clip(r[2:], 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])]) for r in rows]
    return np.array([r for r in rows if (r[4:] > r[2:4]).all()])  # those on the photo


def export(net, x, path, dynamo, **options):
    buffer = io.BytesIO()
    if dynamo:
        torch.onnx.export(net, (x,), dynamo=True, verbose=False).save(buffer)
    else:
        torch.onnx.export(net, (x,), buffer, dynamo=False, opset_version=17, input_names=["images"], **options)
    model = onnx.load_model_from_string(buffer.getvalue())
    if options:
        names = "{0: 'cat', 1: 'dog\\'s', 2: \"cow's\"}"
        entries = {"author": "Ultralytics", "task": "detect", "imgsz": f"[{HEIGHT}, {WIDTH}]", "names": names}
        onnx.helper.set_model_props(model, entries)
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out = pathlib.Path(__file__).parent.parent / "vision/testdata/detectors"
    parser.add_argument("--out", type=pathlib.Path, default=out)
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    torch.manual_seed(59)
    photo = np.random.default_rng(59).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    found = {"photo": photo}
    for name, net, bgr, divisor, overlap in (
        ("yolox", YOLOX(), True, 1, 0.45),
        ("decoded", YOLOX(decoded=True), True, 1, 0.45),
        ("yolov8", YOLOv8(), False, 255, 0.7),
    ):
        for head in (net.classes, getattr(net, "objects", [])):
            for conv in head:
                nn.init.normal_(conv.weight, std=2 if divisor > 1 else 0.03)
        for conv in net.boxes:
            nn.init.normal_(conv.weight, std=2 if divisor > 1 else 0.01)
        image = photo[..., ::-1] if bgr else photo
        x = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).double()[None] / divisor
        with torch.no_grad():
            wide = net.double()
            parts = [torch.cat(p).numpy() for p in zip(*wide.decode(wide.maps(x)), strict=True)]
        centre, size, scores = parts
        boxes = np.concatenate([centre - size / 2, centre + size / 2], 1)
        found[name] = suppressed(boxes, scores, overlap).astype(np.float32)
        net.float()
        sizes = {0: "batch", 2: "height", 3: "width"}
        options = {"dynamic_axes": {"images": sizes}} if name == "yolov8" else {}
        export(net, x.float(), args.out / f"{name}.old.onnx", False, **options)
        export(net, x.float(), args.out / f"{name}.dynamo.onnx", True)
        print(name, len(found[name]), "boxes")
    np.savez_compressed(args.out / "detectors.npz", **found)


if __name__ == "__main__":
    main()
