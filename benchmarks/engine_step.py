"""Time of one schedule-and-process step of the reference engine at four decoding requests, beside vLLM's scheduler.

python benchmarks/engine_step.py            # prints both figures and their ratio
python benchmarks/engine_step.py --steps N --repeat N
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from fencepost.impl.engine.async_scheduler import AsyncScheduler
from fencepost.impl.engine.config import EngineConfig
from fencepost.impl.engine.engine import Engine
from fencepost.impl.engine.output import ModelRunnerOutput
from fencepost.impl.engine.request import Request
from fencepost.impl.engine.simulated_worker import SimulatedWorker

VLLM_MICROSECONDS = 80.0
"""The same step of the real scheduler of vLLM 0.33.0 (schedule and update_from_output), CPU, 2 cores, Python 3.11."""

REQUESTS = 4
PROMPT_TOKENS = 512
TOKEN = 7
CONFIG = EngineConfig(num_gpu_blocks=16384, kv_role="kv_consumer")


def requests(steps: int) -> list[Request]:
    """Requests that decode for longer than the measurement takes."""
    prompts = [range(r * PROMPT_TOKENS, (r + 1) * PROMPT_TOKENS) for r in range(REQUESTS)]
    return [Request(f"{r}", prompt, 2 * steps) for r, prompt in enumerate(prompts)]


def scheduler_step(steps: int) -> float:
    """Microseconds a step of the scheduler alone, one step ahead of its outputs: what the figure of vLLM is of."""
    scheduler = AsyncScheduler(CONFIG)
    for request in requests(steps):
        scheduler.add_request(request)
    result = ModelRunnerOutput({f"{r}": [TOKEN] for r in range(REQUESTS)})
    ahead = scheduler.schedule()
    begin = time.process_time()
    for _ in range(steps):
        step = scheduler.schedule()
        scheduler.update_from_output(ahead, result)
        ahead = step
    return (time.process_time() - begin) / steps * 1e6


def engine_step(steps: int) -> float:
    """Microseconds a step of the whole engine with the simulated worker, which writes and samples."""
    engine = Engine(CONFIG, SimulatedWorker(lambda _request_id: TOKEN))
    for request in requests(steps):
        engine.submit(request)
    engine.schedule()
    begin = time.process_time()
    for _ in range(steps):
        engine.schedule()
        engine.run_step()
        engine.process()
    return (time.process_time() - begin) / steps * 1e6


def median(measure: Callable[[int], float], steps: int, repeat: int) -> float:
    """The median of several measurements, each with a new engine."""
    return statistics.median(measure(steps) for _ in range(repeat))


def main() -> int:
    """Measure, print, and end with 1 where the scheduler's step takes longer than vLLM's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000, help="steps of each measurement (default 4000)")
    parser.add_argument("--repeat", type=int, default=5, help="measurements; the median is shown (default 5)")
    asked = parser.parse_args()
    scheduler = median(scheduler_step, asked.steps, asked.repeat)
    engine = median(engine_step, asked.steps, asked.repeat)
    print(f"scheduler: {scheduler:.1f} microseconds a step; vLLM 0.33.0: {VLLM_MICROSECONDS:.0f}; vLLM to ours: ", end="")
    print(f"{VLLM_MICROSECONDS / scheduler:.2f} times")
    print(f"engine with the simulated worker: {engine:.1f} microseconds a step")
    return int(scheduler > VLLM_MICROSECONDS)


if __name__ == "__main__":
    sys.exit(main())
