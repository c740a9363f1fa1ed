"""A network that is trained by the layers, in about a minute, and converted."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
image = pytest.importorskip("PIL.Image")
pytest.importorskip("onnxscript")
bt = pytest.importorskip("bitcnn.torch")
nn, F = torch.nn, torch.nn.functional

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


def distorted(n: int, seed: int) -> tuple[Any, Any]:
    """Digits [n, 1, 28, 28] of 0 to 255, turned, enlarged and moved, with noise; and which."""
    files = [ROOT / f"cmd/bcnn/samples/digit-{d}.png" for d in range(10)]
    samples = torch.from_numpy(np.stack([np.asarray(image.open(f).convert("L"), np.float32) for f in files]))
    g = torch.Generator().manual_seed(seed)
    which = torch.randint(0, 10, (n,), generator=g)
    angle, scale = (torch.rand(2, n, generator=g) - 0.5) * torch.tensor([[0.5], [0.4]])
    matrix = torch.zeros(n, 2, 3)
    matrix[:, 0, 0] = matrix[:, 1, 1] = angle.cos() * (1 + scale)
    matrix[:, 0, 1] = -angle.sin()
    matrix[:, 1, 0] = angle.sin()
    matrix[:, :, 2] = (torch.rand(n, 2, generator=g) - 0.5) * 0.3
    grid = F.affine_grid(matrix, (n, 1, 28, 28), align_corners=False)
    x = F.grid_sample(samples[which][:, None], grid, align_corners=False)
    x = x + 30 * torch.randn(x.shape, generator=g)
    return x.clamp_(0, 255).round_(), which


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = bt.BinaryConv2d(1, 32, 5), nn.BatchNorm2d(32)
        self.conv2, self.norm2 = bt.BinaryConv2d(32, 64, 5, sign=bt.Sign()), nn.BatchNorm2d(64)
        self.dense1, self.norm3 = bt.BinaryLinear(1024, 128, sign=bt.Sign()), nn.BatchNorm1d(128)
        self.dense2, self.norm4 = bt.BinaryLinear(128, 10, sign=bt.Sign()), nn.BatchNorm1d(10)

    def forward(self, x: Any) -> Any:
        x = self.norm1(F.max_pool2d(self.conv1(x / 255), 2))
        x = self.norm2(F.max_pool2d(self.conv2(x), 2)).flatten(1)
        return self.norm4(self.dense2(self.norm3(self.dense1(x))))


def test_trained_and_converted() -> None:
    torch.manual_seed(0)
    x, labels = distorted(12_800, 1)
    test, test_labels = distorted(2_000, 2)
    net = Net()
    layers = [m for m in net.modules() if isinstance(m, bt.BinaryLayer)]
    optimiser = torch.optim.Adam(net.parameters(), 0.005)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 128)
    start = time.monotonic()
    for step in range(128):
        batch = slice(100 * step, 100 * step + 100)
        loss = F.cross_entropy(net(x[batch]), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        for layer in layers:
            layer.clip()
    seconds = time.monotonic() - start
    net.eval()
    with torch.no_grad():
        packed = net(test)
    floats = net(test).detach()
    assert torch.equal(packed, floats)
    accuracy = (packed.argmax(1) == test_labels).float().mean().item()
    with bt.compile(net, test, device="cpu", max_batch=100) as model:
        scores = model(test.numpy())
    assert np.array_equal(scores.argmax(1), packed.argmax(1).numpy())
    print(f"trained in {seconds:.0f} s, {accuracy:.1%} of {len(test)} images right")
    assert accuracy > 0.95
