"""An inference engine's core without a model: block pool, cache manager, scheduler, engine loop; beside vLLM's v1/core."""
