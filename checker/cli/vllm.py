"""`fencepost vllm`: gets unmodified vLLM releases, says which ones there are, and how they behave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import UsageError
from .vllm_classify import classify

if TYPE_CHECKING:
    from ...impl.vllm.fetch import Fetched
    from ...impl.vllm.release import Release

SHOWN = 12
"""Lines about one release that is damaged or laid out otherwise."""

app = typer.Typer(
    no_args_is_help=True,
    help="Get unmodified vLLM releases, and find out how they behave.\n\nExit codes: as each command says; 2 input error.",
)
app.command()(classify)


@app.command()
def fetch(
    versions: Annotated[list[str], typer.Argument(metavar="VERSION…", help="Releases, such as 0.33.0.", show_default=False)],
    wheel: Annotated[
        Path | None, typer.Option("--wheel", metavar="FILE", help="Unpack this wheel, and download nothing.")
    ] = None,
) -> None:
    """Download the wheels of vLLM releases with pip, and keep the Python source in them, verified.

    What is there already is verified and not downloaded again; an interrupted fetch is taken up. Nothing is installed.

    Exit codes: 0 all are there, 2 one cannot be had.
    """
    from ...impl.vllm.fetch import fetch as fetch_release

    if wheel is not None and len(versions) != 1:
        raise UsageError(f"--wheel {wheel} is one release; name one version, not {len(versions)}")
    for version in versions:
        fetched = fetch_release(version, wheel, lambda text: print(text, file=sys.stderr))
        print(_sentence(fetched, downloaded=wheel is None))
        _warn_of_layout(fetched.release)


def _sentence(fetched: Fetched, *, downloaded: bool) -> str:
    """What a fetch took, in one line."""
    from ..report.words import count, seconds, size

    what = f"{count(fetched.files, 'file')}, {size(fetched.bytes)}"
    where = f"{fetched.release.path}"
    if not fetched.wheel_bytes:
        return f"vLLM {fetched.release.version}: there already, verified ({what}) in {where}"
    took = f"wheel of {size(fetched.wheel_bytes)}"
    if downloaded:
        took += f" downloaded in {seconds(fetched.download_seconds)}"
    return f"vLLM {fetched.release.version}: {took}; {what} unpacked and verified in {seconds(fetched.unpack_seconds)}: {where}"


def _warn_of_layout(release: Release) -> None:
    from ...impl.vllm.layout import missing

    gaps = missing(release)
    if gaps:
        print(f"warning: {release.version} cannot be driven; its source has no {', '.join(gaps)}", file=sys.stderr)


@app.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False) -> None:
    """List the releases that were fetched, and the vLLM that this Python would import.

    Exit codes: 0.
    """
    releases = collected()
    if json_:
        import json

        print(json.dumps({"releases": releases}, indent=2))
        return
    _print(releases)


def collected() -> list[dict[str, Any]]:
    """Every release that is there, as plain data; `damage` and `missing` list what is wrong with its files and layout."""
    from ...impl.vllm import find, layout, record

    here = find.importable()
    return [
        {
            "version": release.version,
            "origin": release.origin,
            "path": str(release.path),
            "bytes": record.measure(release.path)[1] if release.origin == "fetched" else None,
            "damage": record.damage(release.path) if release.origin == "fetched" else [],
            "missing": layout.missing(release),
        }
        for release in [*find.all_fetched(), *([here] if here else [])]
    ]


def _print(releases: list[dict[str, Any]]) -> None:
    from ..report.terminal import console
    from ..report.words import size

    out = console()
    if not releases:
        out.print("no vLLM is here; fencepost vllm fetch 0.33.0 gets a release")
        return
    rows = [("version", "origin", "size", "state", "folder")]
    for release in releases:
        shown = "" if release["bytes"] is None else size(release["bytes"])
        rows.append((release["version"], release["origin"], shown, _state(release), release["path"]))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        out.print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]), soft_wrap=True)
    for release in releases:
        faults = [*release["damage"], *(f"{name} is missing" for name in release["missing"])]
        for fault in faults[:SHOWN]:
            out.print(f"  {release['version']}: {fault}", soft_wrap=True)
        if len(faults) > SHOWN:
            out.print(f"  {release['version']}: and {len(faults) - SHOWN} more, which --json lists", soft_wrap=True)


def _state(release: dict[str, Any]) -> str:
    if release["damage"]:
        return "damaged: fetch it again"
    return "layout unknown" if release["missing"] else "ready"
