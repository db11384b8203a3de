"""Proofs with Z3: bounded model checking to any depth, and induction."""
