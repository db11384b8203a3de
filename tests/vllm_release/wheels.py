"""Small wheels of vLLM, whole and damaged, for the tests of fetching."""

import base64
import hashlib
import zipfile
from pathlib import Path

from fencepost.impl.vllm import layout


def file_of(module: str) -> str:
    """Returns the source file of a module of the known layout."""
    package = any(other.startswith(f"{module}.") for other in layout.NAMES)
    return module.replace(".", "/") + ("/__init__.py" if package else ".py")


def source_files() -> dict[str, str]:
    """Returns source files with every name that a driver needs, in the layout of vLLM."""
    files = {"vllm/__init__.py": "from . import platforms\n", "vllm/platforms/__init__.py": "_current_platform = None\n"}
    for module, names in layout.NAMES.items():
        classes: dict[str, list[str]] = {}
        for name in names:
            top, _, member = name.partition(" or ")[0].partition(".")
            classes.setdefault(top, []).extend([member] if member else [])
        files[file_of(module)] = "".join(
            f"class {top}:\n    def __init__(self):\n        pass\n" + "".join(f"    {m} = None\n" for m in members)
            for top, members in classes.items()
        )
    for path in list(files):
        for parent in list(Path(path).parents)[:-1]:
            files.setdefault(f"{parent}/__init__.py", "")
    return files


def digest(data: bytes) -> str:
    """Returns a hash as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def make_wheel(folder: Path, version: str = "1.2.3", *, files: dict[str, str] | None = None, lie_about: str = "") -> Path:
    """Writes a wheel with these files beside METADATA, a library and RECORD, which has a wrong hash of one of them."""
    notes = f"vllm-{version}.dist-info"
    content = {
        **(source_files() if files is None else files),
        "vllm/data/table.json": "{}",
        "vllm/_C.abi3.so": "machine code",
        f"{notes}/METADATA": f"Metadata-Version: 2.4\nName: vllm\nVersion: {version}\n",
        f"{notes}/WHEEL": "Wheel-Version: 1.0\n",
    }
    rows = [f"{name},{digest(b'other' if name == lie_about else text.encode())},{len(text)}" for name, text in content.items()]
    path = folder / f"vllm-{version}-cp38-abi3-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**content, f"{notes}/RECORD": "\n".join([*rows, f"{notes}/RECORD,,"])}.items():
            archive.writestr(name, text)
    return path


def make_tree(folder: Path, files: dict[str, str] | None = None) -> Path:
    """Writes source files into a folder, and returns it."""
    for name, text in (source_files() if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
