"""The peak rates of GPUs, and which row of the table a product name means.

A roofline needs two rates of the exact card: what its memory delivers and what its tensor cores compute.
Variants of one product differ by up to 2x, so a name is read as a set of words and means a row only when it
says what sets that row apart and nothing that the row does not know: "NVIDIA H100 80GB HBM3" is the SXM card,
"H100" alone is three cards and therefore none, a MIG slice or a 64 GB special is unknown. Do not expect a
guess.

Rates are the vendors' own for dense arithmetic, half of what a datasheet prints with 2:4 sparsity. Where
sources differ the faster one stands here, since a bound must stay below what the card can do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

VENDOR_WORDS = frozenset({"nvidia", "amd", "instinct", "tesla", "gpu"})

NAME_LENGTH = 80
"""Characters of a name that are read: longer than any product name, short enough to print."""


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One card: decimal TB/s of its memory, dense TFLOP/s by dtype, MiB of its last cache level.

    `says` holds the words that a product name may hold beside the family; a name means this card when all of
    its words are there and one of `marks` is among them. `bare`: the vendor calls this card by the family
    alone. `achievable_tflops` is what the vendor itself reached: shown, never used as a bound.
    """

    name: str
    says: str
    bandwidth_tb_s: float
    peak_tflops: dict[str, float]
    cache_mib: float
    source: str
    marks: tuple[str, ...] = ("",)
    bare: bool = False
    achievable_tflops: dict[str, float] = field(default_factory=dict)

    @property
    def family(self) -> str:
        return self.name.split("-")[0].lower()

    def allows(self, rest: frozenset[str]) -> bool:
        """Whether the words beside the family contradict nothing about this card."""
        return rest <= set(self.says.split())

    def is_named_by(self, rest: frozenset[str]) -> bool:
        """Whether the words beside the family single this card out."""
        marked = any(rest.issuperset(mark.split()) for mark in self.marks)
        return self.allows(rest) and (marked or (self.bare and not rest))


@dataclass(frozen=True, slots=True)
class NoSpec:
    """Why a name has no row: `word` is the verdict (unknown-gpu or ambiguous-gpu)."""

    word: str
    because: str


def _tensor(half: float, fp8: float | None = None) -> dict[str, float]:
    """Dense TFLOP/s: bf16 and fp16 share one rate in each datasheet cited here."""
    return {"bf16": half, "fp16": half} | ({"fp8": fp8} if fp8 else {})


VOLTA = {"fp16": 125.0}
AMPERE = _tensor(312.0)
ADA = _tensor(362.05, 733.0)
HOPPER = _tensor(989.4, 1978.9)
HOPPER_NVL = _tensor(835.5, 1670.5)
HOPPER_PCIE = _tensor(756.5, 1513.0)
BLACKWELL = _tensor(2250.0, 4500.0)
CDNA3 = _tensor(1307.4, 2614.9)
CDNA3_ACHIEVED = {"bf16": 708.0, "fp16": 654.0}

V100_SHEET = "NVIDIA V100 datasheet (no bf16)"
A100_SHEET = "NVIDIA A100 datasheet"
L40S_SHEET = "NVIDIA L40S datasheet"
H100_SHEET = "NVIDIA H100 datasheet"
PCIE_SHEET = H100_SHEET + "; TB/s: 5,120 bit at 1,593 MHz (printed as 2)"
NVL_SHEET = H100_SHEET + "; TB/s: product brief PB-11773-001"
H200_SHEET = "NVIDIA H200 datasheet"
B200_SHEET = "NVIDIA Blackwell datasheet (prints 7.7 TB/s for HGX)"
MI300X_SHEET = "AMD MI300X data sheet, endnote MI300-05A"

# Cache: what device queries report for A100, Hopper (datasheets: 50) and B200; the Ada and Volta papers for
# L40S and V100; the Infinity Cache for MI300X.
GPUS = (
    GpuSpec("V100-SXM2", "sxm2 16gb 32gb hbm2", 0.9, VOLTA, 6, V100_SHEET, ("sxm2",)),
    GpuSpec("A100-40GB", "40gb sxm sxm4 pcie hbm2", 1.555, AMPERE, 40, A100_SHEET, ("40gb",)),
    GpuSpec("A100-80GB-SXM", "80gb sxm sxm4 hbm2e", 2.039, AMPERE, 40, A100_SHEET, ("80gb sxm", "80gb sxm4")),
    GpuSpec("A100-80GB-PCIe", "80gb pcie hbm2e", 1.935, AMPERE, 40, A100_SHEET, ("80gb pcie",)),
    GpuSpec("L40S", "48gb gddr6 pcie", 0.864, ADA, 96, L40S_SHEET),
    GpuSpec("H100-SXM", "80gb sxm sxm5 hbm3", 3.35, HOPPER, 60, H100_SHEET, ("sxm", "sxm5", "80gb hbm3")),
    GpuSpec("H100-PCIe", "80gb pcie hbm2e", 2.039, HOPPER_PCIE, 60, PCIE_SHEET, ("pcie",)),
    GpuSpec("H100-NVL", "94gb nvl hbm3", 3.938, HOPPER_NVL, 60, NVL_SHEET, ("nvl",)),
    GpuSpec("H200-SXM", "141gb sxm sxm5 hbm3e", 4.8, HOPPER, 60, H200_SHEET, ("sxm", "sxm5"), bare=True),
    GpuSpec("H200-NVL", "141gb nvl hbm3e", 4.8, HOPPER_NVL, 60, H200_SHEET, ("nvl",)),
    GpuSpec("B200", "180gb 192gb sxm hgx hbm3e", 8.0, BLACKWELL, 127, B200_SHEET),
    GpuSpec("MI300X", "192gb oam vf hbm3", 5.325, CDNA3, 256, MI300X_SHEET, achievable_tflops=CDNA3_ACHIEVED),
)

LARGEST_CACHE_MIB = max(gpu.cache_mib for gpu in GPUS)


def find_gpu(name: str) -> GpuSpec | NoSpec:
    """The one row that a product name (from a trace, nvidia-smi or a user) means, or why there is none."""
    name = name[:NAME_LENGTH]
    said = _words(name)
    family = [gpu for gpu in GPUS if gpu.family in said]
    if not family:
        return NoSpec("unknown-gpu", f"{name!r} is not in the table")
    rest = said - {family[0].family}
    named = [gpu for gpu in family if gpu.is_named_by(rest)]
    return named[0] if len(named) == 1 else _no_row(name, rest, family)


def is_another(name: str, other: str) -> bool:
    """Whether two product names, each in the table, are of no card that bears both."""
    one, two = _meant(name), _meant(other)
    return bool(one and two) and not one & two


def _meant(name: str) -> set[str]:
    """The rows that a name may mean: none where it is not in the table."""
    found = find_gpu(name)
    if isinstance(found, GpuSpec):
        return {found.name}
    said = _words(name[:NAME_LENGTH])
    return {gpu.name for gpu in GPUS if gpu.family in said and gpu.allows(said - {gpu.family})}


def _words(name: str) -> frozenset[str]:
    """The words of a product name in lower case: "80 GB" is one word, vendor names are none."""
    joined = re.sub(r"(\d+)\s+gb\b", r"\1gb", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", joined)) - VENDOR_WORDS


def _no_row(name: str, rest: frozenset[str], family: list[GpuSpec]) -> NoSpec:
    possible = ", ".join(gpu.name for gpu in family if gpu.allows(rest))
    if possible:
        return NoSpec("ambiguous-gpu", f"{name!r} is not one card: name the exact variant: {possible}")
    known = ", ".join(gpu.name for gpu in family)
    return NoSpec("unknown-gpu", f"{name!r} is none of the cards of the table: {known}")
