"""Sizes, configuration and mechanism switches of the KV spec, in vLLM's words."""

from __future__ import annotations

from ..lang import Bound, Index, Switch, larger, smaller

REQUESTS = Index("requests", default=2, letters=True, doc="requests alive at a time")
BLOCKS = Index("blocks", default=4, doc="usable blocks: num-gpu-blocks without the null block")

STEPS = Bound("steps-in-flight", default=2, least=1, doc="steps scheduled and not yet processed, at most")
BLOCK_SIZE = Bound("block-size", default=1, least=1, most=4, doc="tokens a block")
PROMPT = Bound("prompt-tokens", default=3, least=1, doc="longest prompt")
PROMPT_LEAST = Bound("prompt-tokens-least", default=1, least=1, doc="shortest prompt")
MAX_TOKENS = Bound("max-tokens", default=2, least=1, doc="output tokens after which a request ends")
BUDGET = Bound("max-num-batched-tokens", default=8, least=1, doc="tokens a step")
MAX_SEQS = Bound("max-num-seqs", default=8, least=1, doc="running requests, at most")
CACHING = Bound("enable-prefix-caching", default=0, most=1, doc="1: full blocks are hashed and can be hit")
GROUPS = Bound("prefix-groups", default=1, doc="prompt texts that several requests share; needs caching")
REMOTE = Bound("remote-tokens", default=0, doc="tokens of a prompt that a remote side can send; 0: no loads")
WATERMARK = Bound("watermark", default=0, doc="blocks kept free at admissions while something runs")
FULL_ISL = Bound("scheduler-reserve-full-isl", default=1, most=1, doc="1: a whole sequence must fit at admission")
ASYNC = Bound("async-scheduling", default=1, most=1, doc="1: decode is scheduled ahead of its outputs, on placeholders")
RESET_RUNNING = Bound("reset-running", default=0, most=1, doc="1: the cache may be reset while requests run")
ABORTS = Bound("aborts", default=1, most=1, doc="1: clients may disconnect")
EMPTY_STEPS = Bound("empty-steps", default=0, doc="steps without tokens in flight, at most; 0: they come back at once")

ROLE = Switch("kv-role", "none", "kv_consumer", "kv_both", "kv_producer", doc="the connector's role")

FINISH_FREE = Switch("finish-free", "fenced", "at-once", doc="blocks of a request that ended at output processing")
ABORT_FREE = Switch("abort-free", "fenced", "at-once", doc="blocks of a request that was aborted")
PREEMPTION_FREE = Switch("preemption-free", "fenced", "at-once", doc="blocks of a request that was preempted")
UNCACHED_ORDER = Switch("uncached-free-order", "head", "tail", doc="where freed blocks go with caching off")
CACHED_ORDER = Switch("cached-free-order", "split", "tail", doc="with caching on; split: unhashed head, hashed tail")
INTENDED_ORDER = Switch("intended-free-order", "head", "tail", doc="what uncached-free-order was meant to be")
VICTIM = Switch("victim-rule", "not-fenced", "any", doc="whether a victim's blocks must come back at once")
STALE = Switch("stale-output", "marked", "counted", doc="outputs of preempted requests; counted: like any other")
QUEUES = Switch("waiting-queues", "holding", "skipped", doc="who stands in the queue that is looked at first")
RESET_PARKED = Switch("reset-while-parked", "refuse", "raise", doc="a running reset that cannot succeed")
ABORT_OF_LOAD = Switch("abort-of-load", "hold", "at-once", doc="blocks of a request aborted during its load")
ABORT_REPORTED = Switch("abort-after-report", "free", "hold", doc="the same, after the load was reported")
RESERVATION = Switch("admission-reservation", "on", "off", doc="loads leave room for what admitted prompts need")
SKIPS_ENDED = Switch("preempt-skips-ended", "yes", "no", doc="whether a victim is never a request that has ended")
PIN_FIRST = Switch("pin-before-test", "no", "yes", doc="whether hits are pinned before the capacity test")
COUNTS_HITS = Switch("capacity-counts-hits", "no", "yes", doc="whether hits in the free queue count as free")
ENDED_ROWS = Switch("ended-rows", "written", "dropped", doc="tokens of a dispatched step whose request has ended")

SENDS = ROLE.choose({"none": 0, "kv_consumer": 0, "kv_both": 1, "kv_producer": 1})
HANDS_OFF = SENDS * STALE.choose({"marked": 1, "counted": 0})
"""1 where late output of a preempted request is dropped: since 0.27 a producer's hand-off must not miss its blocks (#48245)."""

LOADS = smaller(REMOTE, 1)
"""1 where remote loads exist: writes that nothing orders with the compute stream."""

TOKENS = PROMPT + MAX_TOKENS + larger(STEPS, 2) - STALE.choose({"marked": 3, "counted": 2})
"""Most tokens a request is computed to: over-scheduling by length goes steps - 2 tokens beyond the last useful one."""

TABLE = (TOKENS + BLOCK_SIZE - 1) // BLOCK_SIZE
"""Most blocks in a table."""

PARKED = smaller(REQUESTS * STEPS * TABLE, BLOCKS + CACHING * REQUESTS * STEPS * TABLE)
"""Most blocks that all parked entries name: a request can end again while its last entry still waits for a later step."""

OWN = GROUPS + 1
"""The text of a hash that only one request can have: private prompts and generated tokens."""

ORPHANED = ABORT_OF_LOAD.choose({"hold": 0, "at-once": TABLE})
"""Most blocks that a transfer may still write after its request gave them back."""

ENTRIES = smaller(REQUESTS * STEPS, BLOCKS + CACHING * REQUESTS * STEPS)
"""Most deferred frees: one for each request and fence."""

HOLDERS = 1 + CACHING * REQUESTS * STEPS
"""Most references to a block: it is in one table, or shared through the prefix cache and parked again and again."""
