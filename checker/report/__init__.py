"""How a result is shown; computes no verdict."""
