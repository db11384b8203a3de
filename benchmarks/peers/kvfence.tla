------------------------------ MODULE kvfence ------------------------------
(* kvfence for TLC. FENCE: see benchmarks/kvfence.py. benchmarks/run.py    *)
(* fills in kvfence.cfg. TLC counts the initial state as generated, and    *)
(* its depth is the number of levels.                                      *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS Requests, Blocks, D, K, FENCE

VARIABLES status, blocks, free, flight, deferred

vars == <<status, blocks, free, flight, deferred>>

Both == Permutations(Requests) \cup Permutations(Blocks)
RequestsOnly == Permutations(Requests)

Range(seq) == {seq[i] : i \in DOMAIN seq}

Init ==
    /\ status = [r \in Requests |-> "waiting"]
    /\ blocks = [r \in Requests |-> << >>]
    /\ free = CHOOSE seq \in [1 .. Cardinality(Blocks) -> Blocks] : Range(seq) = Blocks
    /\ flight = << >>
    /\ deferred = << >>

Take(r, new) ==
    /\ free # << >>
    /\ blocks' = [blocks EXCEPT ![r] = Append(@, Head(free))]
    /\ free' = Tail(free)
    /\ status' = [status EXCEPT ![r] = new]
    /\ UNCHANGED <<flight, deferred>>

AtOnce(r) ==
    \/ FENCE = 0
    \/ flight = << >>
    \/ FENCE = 2 /\ Len(flight) = D /\ Len(blocks[r]) = K

Release(r, new) ==
    /\ IF AtOnce(r)
       THEN /\ free' = blocks[r] \o free
            /\ UNCHANGED deferred
       ELSE /\ deferred' = deferred \o [i \in 1 .. Len(blocks[r]) |-> <<Len(flight), blocks[r][i]>>]
            /\ UNCHANGED free
    /\ blocks' = [blocks EXCEPT ![r] = << >>]
    /\ status' = [status EXCEPT ![r] = new]
    /\ UNCHANGED flight

AdmitLocal(r) == status[r] = "waiting" /\ Take(r, "running")

AdmitRemote(r) == status[r] = "waiting" /\ Take(r, "remote")

NicArrive(r) ==
    /\ status[r] = "remote"
    /\ status' = [status EXCEPT ![r] = "running"]
    /\ UNCHANGED <<blocks, free, flight, deferred>>

Grow(r) == status[r] = "running" /\ Len(blocks[r]) < K /\ Take(r, "running")

Finish(r) == status[r] = "running" /\ Release(r, "finished")

Abort(r) == status[r] \in {"running", "remote"} /\ Release(r, "finished")

Preempt(r) == status[r] \in {"running", "remote"} /\ Release(r, "waiting")

Recycle(r) ==
    /\ status[r] = "finished"
    /\ status' = [status EXCEPT ![r] = "waiting"]
    /\ UNCHANGED <<blocks, free, flight, deferred>>

Running == {r \in Requests : status[r] = "running"}

Schedule ==
    /\ Len(flight) < D
    /\ Running # {}
    /\ flight' = Append(flight, UNION {Range(blocks[r]) : r \in Running})
    /\ UNCHANGED <<status, blocks, free, deferred>>

\* Fences never decrease along the queue, so what is due is its beginning.
Process ==
    /\ flight # << >>
    /\ flight' = Tail(flight)
    /\ LET due == Cardinality({i \in DOMAIN deferred : deferred[i][1] = 1})
       IN  /\ free' = [i \in 1 .. due |-> deferred[i][2]] \o free
           /\ deferred' = [i \in 1 .. Len(deferred) - due |-> <<deferred[i + due][1] - 1, deferred[i + due][2]>>]
    /\ UNCHANGED <<status, blocks>>

Next ==
    \/ \E r \in Requests : AdmitLocal(r)
    \/ \E r \in Requests : AdmitRemote(r)
    \/ \E r \in Requests : NicArrive(r)
    \/ \E r \in Requests : Grow(r)
    \/ \E r \in Requests : Finish(r)
    \/ \E r \in Requests : Abort(r)
    \/ \E r \in Requests : Preempt(r)
    \/ \E r \in Requests : Recycle(r)
    \/ Schedule
    \/ Process

NoWriteIntoABlockInFlight ==
    \A r \in Requests : status[r] = "remote" =>
        \A k \in DOMAIN flight : Range(blocks[r]) \cap flight[k] = {}
=============================================================================
