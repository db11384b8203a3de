"""What is compiled here is optimised as it is for users."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def optimised() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FENCEPOST_OPTIMISE", raising=False)
        yield
