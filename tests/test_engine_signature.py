"""What a kernel's signature accepts, and what a mismatch says."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sample_engine.dtypes import FLOAT32, INT64, DType
from sample_engine.kernel import kernel
from sample_engine.signature import buffer_specs, mismatch


@dataclass(frozen=True)
class Shaped:
    """A buffer without memory."""

    shape: tuple[int, ...]
    dtype: DType = FLOAT32


FITTING = [
    ("bn bk kn", [(2, 3), (2, 5), (5, 3)]),
    ("...", [()]),
    ("... ...", [(2, 3, 4), (2, 3, 4)]),
    ("...d ...1 d", [(2, 3, 4), (2, 3, 1), (4,)]),
    ("...d ...d", [(4,), (4,)]),
    ("b1 bd", [(2, 1), (2, 7)]),
]

WRONG = [
    ("bn bk kn", [(2, 3), (2, 5), (4, 3)], "kn cannot be (4, 3): k is 5 already"),
    ("bn", [(2, 3, 4)], "bn cannot be float32 (2, 3, 4)"),
    ("... ...", [(2, 3), (2, 3, 1)], "... cannot be (2, 3, 1): . is (2, 3) already"),
    ("...dk", [(4,)], "...dk cannot be float32 (4,)"),
    ("b1", [(2, 2)], "b1 cannot be (2, 2): 1 is 1 already"),
    ("b:int64", [(2,)], "b:int64 cannot be float32 (2,)"),
]


@pytest.mark.parametrize(("signature", "shapes"), FITTING)
def test_fitting_shapes_pass(signature: str, shapes: list[tuple[int, ...]]) -> None:
    assert mismatch(buffer_specs(signature), [Shaped(one) for one in shapes]) == ""


@pytest.mark.parametrize(("signature", "shapes", "text"), WRONG)
def test_a_mismatch_names_the_buffer_and_the_dimension(
    signature: str, shapes: list[tuple[int, ...]], text: str
) -> None:
    assert mismatch(buffer_specs(signature), [Shaped(one) for one in shapes]) == text


def test_dtypes_are_checked_where_one_is_given() -> None:
    specs = buffer_specs("d:int64 d:any")
    assert mismatch(specs, [Shaped((2,), INT64), Shaped((2,), FLOAT32)]) == ""
    assert mismatch(specs, [Shaped((2,), FLOAT32), Shaped((2,))]) == "d:int64 cannot be float32 (2,)"


@pytest.mark.parametrize("text", ["b:float31", "b-d", "b...", "2d"])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="describes no buffer"):
        buffer_specs(text)


def test_scalars_come_last_and_are_numbers() -> None:
    def scaled(out: object, factor: str) -> None: ...

    scaled.__qualname__ = "scaled"
    with pytest.raises(ValueError, match="int or float"):
        kernel("n")(scaled)


def test_a_kernel_that_another_process_could_not_import_is_refused() -> None:
    def local(out: object) -> None: ...

    with pytest.raises(ValueError, match="top of a module"):
        kernel("n")(local)
