"""What a driver needs of a vLLM release, and whether the release's source has it; read from the source, not imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from .errors import ReleaseError
from .record import lost
from .release import Release

CONNECTORS = "vllm.distributed.kv_transfer.kv_connector"

NAMES: dict[str, tuple[str, ...]] = {
    "vllm.config": (
        *("CacheConfig", "KVTransferConfig", "ObservabilityConfig", "ParallelConfig", "SchedulerConfig", "VllmConfig"),
    ),
    "vllm.config.scheduler": ("SchedulerConfig.default_factory",),
    "vllm.config.vllm": ("VllmConfig.max_concurrent_batches",),
    f"{CONNECTORS}.factory": (
        "KVConnectorFactory.create_connector",
        "KVConnectorFactory.register_connector",
        "KVConnectorFactory.supports_hma_config",
    ),
    f"{CONNECTORS}.v1.base": ("KVConnectorBase_V1", "SupportsHMA"),
    "vllm.platforms.interface": ("UnspecifiedPlatform",),
    "vllm.sampling_params": ("SamplingParams",),
    "vllm.utils.hashing": ("sha256",),
    "vllm.v1.core.block_pool": (
        *("BlockPool.blocks", "BlockPool.cached_block_hash_to_block", "BlockPool.free_block_queue"),
        *("BlockPool.get_new_blocks", "BlockHashToBlockMap._cache"),
    ),
    "vllm.v1.core.kv_cache_coordinator": ("KVCacheCoordinator.single_type_managers",),
    "vllm.v1.core.kv_cache_manager": (
        *("KVCacheManager.block_pool", "KVCacheManager.coordinator", "KVCacheManager.get_block_ids"),
    ),
    "vllm.v1.core.kv_cache_utils": (
        *("FreeKVCacheBlockQueue.get_all_free_blocks", "KVCacheBlock.block_hash", "KVCacheBlock.block_id"),
        *("KVCacheBlock.ref_cnt", "get_block_hash", "get_request_block_hasher", "init_none_hash"),
    ),
    "vllm.v1.core.sched.async_scheduler": ("AsyncScheduler",),
    "vllm.v1.core.sched.interface": ("SchedulerInterface",),
    "vllm.v1.core.sched.output": ("SchedulerOutput.make_empty",),
    "vllm.v1.core.sched.scheduler": (
        *("Scheduler.add_request", "Scheduler.schedule", "Scheduler.update_from_output", "Scheduler.finish_requests"),
        *("Scheduler.get_num_unfinished_requests", "Scheduler.reset_prefix_cache"),
        *("Scheduler.connector", "Scheduler.kv_cache_manager", "Scheduler.requests", "Scheduler.running"),
        *("Scheduler.waiting", "Scheduler.kv_holding_waiting or Scheduler.skipped_waiting"),
        *("Scheduler._inflight_prefills", "Scheduler.finished_recving_kv_req_ids"),
    ),
    "vllm.v1.core.single_type_kv_cache_manager": ("SingleTypeKVCacheManager.req_to_blocks",),
    "vllm.v1.kv_cache_interface": ("FullAttentionSpec", "KVCacheConfig", "KVCacheGroupSpec"),
    "vllm.v1.outputs": ("KVConnectorOutput", "ModelRunnerOutput"),
    "vllm.v1.request": (
        *("Request.block_hashes", "Request.is_finished", "Request.num_computed_tokens", "Request.num_output_placeholders"),
        *("Request.num_output_tokens", "Request.num_prompt_tokens", "Request.request_id", "Request.status"),
        *("RequestStatus.FINISHED_ABORTED", "RequestStatus.WAITING_FOR_REMOTE_KVS"),
    ),
}
"""Each module that is imported, and what a driver uses of it; one of those joined by `or` suffices.

The queue that is looked at before `waiting` is `skipped_waiting` to 0.30, `kv_holding_waiting` since 0.31.
"""


def check(release: Release) -> None:
    """Raise a ReleaseError where the source has a syntax error, lost a file, or lacks what a driver needs: all of it."""
    gaps = missing(release)
    if not gaps:
        return
    again = f"fencepost vllm fetch {release.version}" if release.origin == "fetched" else "copy or install it again"
    for module in NAMES:
        _, fault = _parsed(_file(release, module))
        if fault:
            raise ReleaseError(f"{fault}; mend this line of {release}, or get it whole: {again}")
    gone = lost(release.path)
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise ReleaseError(f"{release}: {gone[0]}{more} is missing, which its RECORD lists; get it whole: {again}")
    listed = "".join(f"\n  {gap}" for gap in gaps)
    raise ReleaseError(
        f"{release} is laid out otherwise than the releases this driver knows (0.23.0 to 0.33.0); missing:{listed}"
        "\nUse a release that has them, or extend impl/vllm"
    )


def missing(release: Release) -> list[str]:
    """Return what the source of a release lacks, one sentence part each, in the order of `NAMES`."""
    gaps: list[str] = []
    for module, names in NAMES.items():
        path = _file(release, module)
        if path is None:
            gaps.append(f"module {module}")
            continue
        source, fault = _parsed(path)
        if source is None:
            gaps.append(f"module {module} ({fault})")
            continue
        there = _names(source)
        gaps += [f"{module}.{name}" for name in names if there.isdisjoint(name.split(" or "))]
    return gaps


def _parsed(path: Path | None) -> tuple[ast.Module | None, str]:
    """The source of a file; None where there is no file, or where it is no Python, and then where and why."""
    if path is None:
        return None, ""
    try:
        return ast.parse(path.read_bytes(), str(path)), ""
    except SyntaxError as error:
        return None, f"{path}:{error.lineno or 1}: syntax error: {error.msg}"
    except ValueError as error:
        return None, f"{path}: not Python source: {error}"


def _file(release: Release, module: str) -> Path | None:
    """The source file of a module, or None."""
    base = release.path.joinpath(*module.split("."))
    files = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in files if path.is_file()), None)


def _names(module: ast.Module) -> set[str]:
    """What a module defines or imports, and the members of its classes as `Class.member`."""
    found: set[str] = set()
    for node in _statements(module.body):
        found.update(_bound(node))
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{name}" for name in _members(node))
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, with those inside `if`, `try` and `with`."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(node, part, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from _statements(handler.body)


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that one statement binds."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            pass


def _members(node: ast.ClassDef) -> Iterator[str]:
    """What a class binds in its body, and the attributes that its methods give to `self`."""
    for statement in _statements(node.body):
        yield from _bound(statement)
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass
