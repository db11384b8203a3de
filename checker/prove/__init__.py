"""Proofs with a SAT solver and Z3: induction, bounded model checking to any depth, and protocols of any size."""
