"""Single instructions that numba has no name for, on words of 64 bits."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending, types

intrinsic: Any = extending.intrinsic
WORD = ir.IntType(64)
TWO_WORDS = ir.IntType(128)


@intrinsic
def load_word(context: Any, address: Any) -> Any:
    """The eight bytes at an address, the first lowest; nobody checks what is there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], WORD.as_pointer())
        return builder.load(place, align=1)

    return types.uint64(types.uint64), generate


@intrinsic
def high_product(context: Any, a: Any, b: Any) -> Any:
    """The upper half of the product of two words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = (builder.zext(argument, TWO_WORDS) for argument in arguments)
        high = builder.lshr(builder.mul(a, b), ir.Constant(TWO_WORDS, 64))
        return builder.trunc(high, WORD)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def leading_zeros(context: Any, word: Any) -> Any:
    """The zero bits above the highest that is set; 64 if none is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(context: Any, word: Any) -> Any:
    """The zero bits below the lowest that is set; 64 if none is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def as_double(context: Any, word: Any) -> Any:
    """The double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate
