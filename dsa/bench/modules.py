"""Small modules of PyTorch to be planned and run: convolutions, attention, branches, pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsa.bench.sources import require

__all__ = ["MODULES", "branches", "convolutional", "pixels", "transformer"]


def convolutional(channels: int = 32, width: int = 56, blocks: int = 4) -> tuple[Any, Any]:
    """Residual blocks of two convolutions with batch normalisation; and an image."""
    torch = require("torch", "building modules")
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels),
            )

        def forward(self, x: Any) -> Any:
            return torch.relu(self.layers(x) + x)

    torch.manual_seed(7)
    module = nn.Sequential(*(Block() for _ in range(blocks))).eval()
    return module, torch.randn(1, channels, width, width)


def transformer(tokens: int = 128, width: int = 256, blocks: int = 4) -> tuple[Any, Any]:
    """Blocks of attention and two linear layers, normalised; and words."""
    torch = require("torch", "building modules")
    nn, heads = torch.nn, 4

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.before(x)).view(1, tokens, 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            scores = torch.softmax(q @ k.transpose(-1, -2) * (width // heads) ** -0.5, -1)
            x = x + self.out((scores @ v).transpose(1, 2).reshape(1, tokens, width))
            return x + self.down(nn.functional.gelu(self.up(self.after(x))))

    torch.manual_seed(7)
    module = nn.Sequential(*(Block() for _ in range(blocks))).eval()
    return module, torch.randn(1, tokens, width)


def branches(channels: int = 32, width: int = 56, blocks: int = 3) -> tuple[Any, Any]:
    """Blocks of four branches side by side, whose results are joined; and an image."""
    torch = require("torch", "building modules")
    nn, part = torch.nn, channels // 4

    def branch(*windows: int) -> Any:
        wide = [channels] + [part] * (len(windows) - 1)
        layers = [
            layer
            for before, k in zip(wide, windows, strict=True)
            for layer in (nn.Conv2d(before, part, k, padding=k // 2), nn.ReLU())
        ]
        return nn.Sequential(*layers)

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.branches = nn.ModuleList([branch(1), branch(1, 3), branch(1, 3, 3), branch(5)])

        def forward(self, x: Any) -> Any:
            return torch.cat([branch(x) for branch in self.branches], 1)

    torch.manual_seed(7)
    module = nn.Sequential(*(Block() for _ in range(blocks))).eval()
    return module, torch.randn(1, channels, width, width)


def pixels(width: int = 1024, blocks: int = 2) -> tuple[Any, Any]:
    """Arithmetic on every pixel of a large image: much memory, little to compute."""
    torch = require("torch", "building modules")

    class Tone(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            for _ in range(blocks):
                grey = x.mean(1, keepdim=True)
                light = torch.clamp(x * 1.25 - grey * 0.25, 0, 1)
                dark = torch.clamp(x * 0.75 + 0.125, 0, 1)
                x = light * grey + dark * (1 - grey)
            return x.mean((2, 3))

    torch.manual_seed(7)
    return Tone().eval(), torch.rand(1, 4, width, width)


MODULES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "convolutional": convolutional,
    "transformer": transformer,
    "branches": branches,
    "pixels": pixels,
}
