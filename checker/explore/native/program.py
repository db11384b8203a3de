"""A spec at given bounds, lowered to dialect text, as the native search takes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_MASK_BITS = 63
"""Properties, and witnesses, are bits of one signed 64-bit mask."""


@dataclass(frozen=True)
class Program:
    """Dialect text of the functions `unpack`, `pack`, `check`, `expand` and, with symmetry, `canon`; and its sizes."""

    text: str
    words: int
    """64-bit words of a packed state."""
    cell_bytes: int
    """Bytes of an unpacked state."""
    max_out: int
    """No state has more transitions than this."""
    actions: int
    properties: int
    witnesses: int
    covers: int
    symmetry: bool = False
    constants: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        if self.words < 1 or self.cell_bytes < 1 or self.max_out < 1:
            raise ValueError("a program has at least one word, one byte of cells and one transition")
        if max(self.properties, self.witnesses) > MAX_MASK_BITS:
            raise ValueError(f"at most {MAX_MASK_BITS} properties and as many witnesses are possible")
