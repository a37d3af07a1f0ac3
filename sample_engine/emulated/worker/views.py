"""Device memory as the device process has it: one storage, and a torch view for each address in use."""

from __future__ import annotations

import torch

from sample_engine.emulated.shared.block import SharedBlock
from sample_engine.emulated.shared.layouts import read_layout, split_address

KEPT_VIEWS = 1 << 14
"""Views are forgotten all at once when there are more; each is made again in microseconds."""


class Views(dict[int, torch.Tensor]):
    """Views into `memory` (bytes) by address."""

    def __init__(self, block: SharedBlock, memory: torch.Tensor) -> None:
        super().__init__()
        self._block = block
        self._storage = memory.untyped_storage()

    def __missing__(self, word: int) -> torch.Tensor:
        if len(self) >= KEPT_VIEWS:
            self.clear()
        offset_bytes, layout_id = split_address(word)
        layout = read_layout(self._block, layout_id)
        start = offset_bytes // layout.dtype.item_bytes
        view = torch.empty(0, dtype=getattr(torch, layout.dtype.name))
        view.set_(self._storage, start, layout.shape, layout.strides)
        self[word] = view
        return view
