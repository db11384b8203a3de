"""Memory from the operating system."""

import ctypes
import mmap

import pytest
from fencepost.checker.explore.native import memory
from fencepost.checker.explore.native.memory import PAGE, Block, process_memory, processors


def test_a_block_is_zeroed_and_keeps_its_contents_when_it_grows() -> None:
    block = Block(100)
    assert block.size == PAGE
    assert ctypes.string_at(block.address, 100) == bytes(100)
    ctypes.memset(block.address, 7, PAGE)
    block.grow(64 * PAGE + 1)
    assert block.size == 65 * PAGE
    assert ctypes.string_at(block.address, PAGE + 1) == b"\7" * PAGE + b"\0"
    block.close()


def test_where_mappings_cannot_be_resized_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(mmap.mmap):
        def resize(self, newsize: int) -> None:
            raise SystemError("mmap: resizing not available")

    monkeypatch.setattr(memory.mmap, "mmap", Fixed)
    block = Block(PAGE)
    ctypes.memset(block.address, 7, PAGE)
    block.grow(3 * PAGE)
    assert ctypes.string_at(block.address, PAGE + 1) == b"\7" * PAGE + b"\0"


def test_too_much_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="are not to be had"):
        Block(1 << 60)


def test_pages_are_paid_for_when_they_are_touched() -> None:
    before = process_memory()
    block = Block(256 << 20)
    assert process_memory() - before < 8 << 20
    block.close()
    provided = Block(16 << 20, at_once=True, large_pages=True)
    assert provided.size == 16 << 20
    provided.close()


def test_there_is_a_processor() -> None:
    assert processors() >= 1
