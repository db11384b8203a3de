"""The benchmark model kvfence, written in the dialect by hand, for tests of the native search alone."""

from dataclasses import dataclass

from fencepost.checker.explore.native.program import Program

ACTIONS = ("admit_local", "admit_remote", "nic_arrive", "grow", "finish", "abort", "preempt", "recycle")
SCHEDULE, PROCESS = 8, 9
WAITING, RUNNING, REMOTE, FINISHED = range(4)

BODY = """
@inline
def take(cells, r):
    table = cells + TABLE + (K + 1) * r
    n = load8(table)
    store8(table + 1 + n, load8(cells + FREE + 1))
    store8(table, n + 1)
    left = load8(cells + FREE) - 1
    store8(cells + FREE, left)
    for i in range(B - 1):
        store8(cells + FREE + 1 + i, load8(cells + FREE + 2 + i))
    store8(cells + FREE + B, 0)

@noinline
def free_first(cells, blocks, n):
    for i in range(load8(cells + FREE)):
        at = load8(cells + FREE) - 1 - i
        store8(cells + FREE + 1 + at + n, load8(cells + FREE + 1 + at))
    for i in range(n):
        store8(cells + FREE + 1 + i, load8(blocks + i))
    store8(cells + FREE, load8(cells + FREE) + n)

@noinline
def release(cells, r):
    table = cells + TABLE + (K + 1) * r
    held = load8(table)
    n = load8(cells + FLIGHT)
    if FENCE == 0 or n == 0 or FENCE == 2 and n == D and held == K:
        free_first(cells, table + 1, held)
    else:
        at = load8(cells + DEFERRED)
        for i in range(held):
            store8(cells + DEFERRED + 1 + 2 * (at + i), n)
            store8(cells + DEFERRED + 2 + 2 * (at + i), load8(table + 1 + i))
        store8(cells + DEFERRED, at + held)
    clear(table, K + 1)

def schedule(cells):
    mask = 0
    for r in range(R):
        if load8(cells + r) == RUNNING:
            table = cells + TABLE + (K + 1) * r
            for i in range(load8(table)):
                mask |= 1 << load8(table + 1 + i)
    n = load8(cells + FLIGHT)
    store8(cells + FLIGHT + 1 + n, mask)
    store8(cells + FLIGHT, n + 1)

def process(cells):
    n = load8(cells + FLIGHT) - 1
    store8(cells + FLIGHT, n)
    for i in range(D - 1):
        store8(cells + FLIGHT + 1 + i, load8(cells + FLIGHT + 2 + i))
    store8(cells + FLIGHT + D, 0)
    ready = alloca(B)
    count = 0
    keep = 0
    entries = cells + DEFERRED + 1
    total = load8(cells + DEFERRED)
    for i in range(total):
        fence = load8(entries + 2 * i) - 1
        block = load8(entries + 2 * i + 1)
        if fence == 0:
            store8(ready + count, block)
            count += 1
        else:
            store8(entries + 2 * keep, fence)
            store8(entries + 2 * keep + 1, block)
            keep += 1
    for i in range(keep, total):
        store8(entries + 2 * i, 0)
        store8(entries + 2 * i + 1, 0)
    store8(cells + DEFERRED, keep)
    free_first(cells, ready, count)

def check(cells, out, cover):
    bad = 0
    seen = 0
    for r in range(R):
        if load8(cells + r) == REMOTE:
            store8(cover, 1)
            table = cells + TABLE + (K + 1) * r
            for i in range(load8(table)):
                for j in range(load8(cells + FLIGHT)):
                    bad |= loadu8(cells + FLIGHT + 1 + j) >> load8(table + 1 + i) & 1
    store64(out, bad)
    store64(out + 8, (load8(cells + DEFERRED) == B) | (load8(cells + FLIGHT) == D) << 1)
    return 0

def expand(cells, ctx):
    next = alloca(CELLS)
    room = load8(cells + FREE) > 0
    for kind in range(2):
        for r in range(R):
            if load8(cells + r) == WAITING and room:
                copy(next, cells, CELLS)
                take(next, r)
                store8(next + r, REMOTE if kind else RUNNING)
                emit(ctx, kind, next)
    for r in range(R):
        if load8(cells + r) == REMOTE:
            copy(next, cells, CELLS)
            store8(next + r, RUNNING)
            emit(ctx, 2, next)
    for r in range(R):
        if load8(cells + r) == RUNNING and room and load8(cells + TABLE + (K + 1) * r) < K:
            copy(next, cells, CELLS)
            take(next, r)
            emit(ctx, 3, next)
    for kind in range(4, 7):
        for r in range(R):
            status = load8(cells + r)
            if status == RUNNING or kind > 4 and status == REMOTE:
                copy(next, cells, CELLS)
                release(next, r)
                store8(next + r, WAITING if kind == 6 else FINISHED)
                emit(ctx, kind, next)
    running = 0
    for r in range(R):
        running |= load8(cells + r) == RUNNING
        if load8(cells + r) == FINISHED:
            copy(next, cells, CELLS)
            store8(next + r, WAITING)
            emit(ctx, 7, next)
    if running and load8(cells + FLIGHT) < D:
        copy(next, cells, CELLS)
        schedule(next)
        emit(ctx, 8, next)
    if load8(cells + FLIGHT) > 0:
        copy(next, cells, CELLS)
        process(next)
        emit(ctx, 9, next)
"""


@dataclass(frozen=True)
class Fields:
    """Where every byte of the cells goes in the packed words: (offset of the byte, word, shift, bits)."""

    places: list[tuple[int, int, int, int]]
    words: int

    @classmethod
    def of(cls, widths: list[int]) -> "Fields":
        places: list[tuple[int, int, int, int]] = []
        word = shift = 0
        for offset, bits in enumerate(widths):
            if shift + bits > 64:
                word, shift = word + 1, 0
            places.append((offset, word, shift, bits))
            shift += bits
        return cls(places, word + 1)

    def text(self) -> str:
        lines = ["def unpack(words, cells):"]
        for offset, word, shift, bits in self.places:
            source = f"lshr(load64(words + {8 * word}), {shift})" if shift else f"load64(words + {8 * word})"
            lines.append(f"    store8(cells + {offset}, {source} & {(1 << bits) - 1})")
        lines.append("def pack(cells, words):")
        for word in range(self.words):
            terms = [f"loadu8(cells + {o}) << {s}" for o, w, s, _ in self.places if w == word]
            lines.append(f"    store64(words + {8 * word}, {' | '.join(terms)})")
        return "\n".join(lines) + "\n"


def program(r: int, b: int, d: int, k: int, fence: int) -> Program:
    """Return kvfence at the given bounds: one property, two witnesses (all blocks deferred, all steps in flight)."""
    block, count = max(1, (b - 1).bit_length()), b.bit_length()
    widths = [2] * r + ([k.bit_length()] + [block] * k) * r
    table, free = r, len(widths)
    widths += [count] + [block] * b
    flight = len(widths)
    widths += [d.bit_length()] + [b] * d
    deferred = len(widths)
    widths += [count] + [d.bit_length(), block] * b
    fields = Fields.of(widths)
    constants = {"R": r, "B": b, "D": d, "K": k, "FENCE": fence, "TABLE": table, "FREE": free, "FLIGHT": flight}
    constants |= {"DEFERRED": deferred, "WAITING": WAITING, "RUNNING": RUNNING, "REMOTE": REMOTE, "FINISHED": FINISHED}
    return Program(
        text=fields.text() + BODY,
        words=fields.words,
        cell_bytes=len(widths),
        max_out=4 * r + 2,
        actions=10,
        properties=1,
        witnesses=2,
        covers=1,
        constants=constants,
    )


def initial(r: int, b: int, d: int, k: int) -> list[int]:
    """Return the packed initial state: every request waits, all blocks are free in order."""
    block, count = max(1, (b - 1).bit_length()), b.bit_length()
    cells = [(2, 0)] * r + ([(k.bit_length(), 0)] + [(block, 0)] * k) * r + [(count, b)] + [(block, i) for i in range(b)]
    cells += [(d.bit_length(), 0)] + [(b, 0)] * d + [(count, 0)] + [(d.bit_length(), 0), (block, 0)] * b
    fields = Fields.of([bits for bits, _ in cells])
    words = [0] * fields.words
    for offset, word, shift, _ in fields.places:
        words[word] |= cells[offset][1] << shift
    return words


SIZES = {"tiny": (2, 3, 2, 2), "small": (3, 3, 2, 2), "medium": (3, 4, 3, 3), "large": (2, 6, 2, 2)}
COUNTS = {
    "tiny": (4_374, 20_136, 12),
    "small": (15_396, 93_306, 10),
    "medium": (1_202_640, 7_301_448, 16),
    "large": (10_550_160, 53_688_240, 28),
}


# The same model once more, in plain Python, to follow marked states without the compiled code.


def _widths(r: int, b: int, d: int, k: int) -> list[int]:
    block, count = max(1, (b - 1).bit_length()), b.bit_length()
    widths = [2] * r + ([k.bit_length()] + [block] * k) * r + [count] + [block] * b
    return widths + [d.bit_length()] + [b] * d + [count] + [d.bit_length(), block] * b


State = tuple[list[int], list[list[int]], list[int], list[int], list[tuple[int, int]]]


def _decode(words: tuple[int, ...], r: int, b: int, d: int, k: int) -> State:
    places = Fields.of(_widths(r, b, d, k)).places
    cells = iter([words[word] >> shift & (1 << bits) - 1 for _, word, shift, bits in places])
    status = [next(cells) for _ in range(r)]
    tables: list[list[int]] = []
    for _ in range(r):
        n, row = next(cells), [next(cells) for _ in range(k)]
        tables.append(row[:n])
    n, row = next(cells), [next(cells) for _ in range(b)]
    free = row[:n]
    n, row = next(cells), [next(cells) for _ in range(d)]
    flight = row[:n]
    n, pairs = next(cells), [(next(cells), next(cells)) for _ in range(b)]
    return status, tables, free, flight, pairs[:n]


def _encode(state: State, r: int, b: int, d: int, k: int) -> tuple[int, ...]:
    status, tables, free, flight, deferred = state
    cells = list(status)
    for table in tables:
        cells += [len(table), *table, *[0] * (k - len(table))]
    cells += [len(free), *free, *[0] * (b - len(free)), len(flight), *flight, *[0] * (d - len(flight))]
    cells += [len(deferred), *(value for pair in deferred for value in pair), *[0] * (2 * (b - len(deferred)))]
    fields = Fields.of(_widths(r, b, d, k))
    words = [0] * fields.words
    for offset, word, shift, _ in fields.places:
        words[word] |= cells[offset] << shift
    return tuple(words)


def successors(words: tuple[int, ...], r: int, b: int, d: int, k: int, fence: int) -> list[tuple[int, ...]]:
    """Return the packed successors of a packed state."""
    found: list[tuple[int, ...]] = []

    def fresh() -> State:
        return _decode(words, r, b, d, k)

    def take(state: State, q: int) -> None:
        state[1][q].append(state[2].pop(0))

    def release(state: State, q: int) -> None:
        _, tables, free, flight, deferred = state
        n = len(flight)
        if fence == 0 or n == 0 or (fence == 2 and n == d and len(tables[q]) == k):
            free[:0] = tables[q]
        else:
            deferred += [(n, block) for block in tables[q]]
        tables[q] = []

    def done(state: State, q: int | None = None, status: int = 0) -> None:
        if q is not None:
            state[0][q] = status
        found.append(_encode(state, r, b, d, k))

    status, tables, free, flight, _ = fresh()
    for q in range(r):
        if status[q] == WAITING and free:
            for after in (RUNNING, REMOTE):
                take(state := fresh(), q)
                done(state, q, after)
        if status[q] == REMOTE:
            done(fresh(), q, RUNNING)
        if status[q] == RUNNING and free and len(tables[q]) < k:
            take(state := fresh(), q)
            done(state)
        if status[q] in (RUNNING, REMOTE):
            for after in (FINISHED, WAITING):
                release(state := fresh(), q)
                done(state, q, after)
        if status[q] == FINISHED:
            done(fresh(), q, WAITING)
    if len(flight) < d and RUNNING in status:
        state = fresh()
        state[3].append(sum(1 << block for q in range(r) if status[q] == RUNNING for block in tables[q]))
        done(state)
    if flight:
        state = fresh()
        state[3].pop(0)
        ready = [block for wait, block in state[4] if wait == 1]
        state[4][:] = [(wait - 1, block) for wait, block in state[4] if wait > 1]
        state[2][:0] = ready
        done(state)
    return found


def violates(words: tuple[int, ...], r: int, b: int, d: int, k: int) -> bool:
    """Say whether a block of a remote request is in a mask in flight."""
    status, tables, _, flight, _ = _decode(words, r, b, d, k)
    return any(m >> x & 1 for q in range(r) if status[q] == REMOTE for x in tables[q] for m in flight)
