"""A kiosk lends umbrellas: a spec with properties of every kind, of which an implementation shows a part; a switch is wrong."""

from enum import IntEnum

from fencepost.spec.lang import (
    Array,
    Bound,
    Index,
    Int,
    Maybe,
    Seq,
    Switch,
    abstraction,
    action,
    always,
    implies,
    init,
    latent,
    observed,
    quiescent,
    reachable,
    require,
    state,
    step,
)

GUESTS = Index("guests", default=2, letters=True)
UMBRELLAS = Index("umbrellas", default=2)
LOANS = Bound("loans", default=3, least=1)
RETURNS = Switch("returns", "back", "front")


class Trouble(IntEnum):
    NONE = 0
    JAMMED = 1


@state
class Kiosk:
    has: Array[GUESTS, Maybe[UMBRELLAS]]
    rack: Seq[UMBRELLAS, UMBRELLAS]
    loans: Int(0, LOANS)
    trouble: Trouble


@init
def fill(s):
    for u in range(UMBRELLAS):
        s.rack.append(u)


@action
def lend(s, g: GUESTS):
    """Guest {g} takes the first umbrella."""
    require(s.trouble == Trouble.NONE and s.has[g] is None and len(s.rack) > 0 and s.loans < LOANS)
    s.has[g] = s.rack.pop_front()
    s.loans += 1


@action
def bring(s, g: GUESTS):
    """Guest {g} brings the umbrella back."""
    require(s.trouble == Trouble.NONE and s.has[g] is not None)
    if RETURNS == "back":
        s.rack.append(s.has[g])
    else:
        s.rack.push_front(s.has[g])
    s.has[g] = None


@action
def settle(s):
    """The day ends: loans are counted anew."""
    require(s.trouble == Trouble.NONE and len(s.rack) == UMBRELLAS and s.loans > 0)
    s.loans = 0


@always
def every_umbrella_once(s):
    """An umbrella is on the rack or with one guest."""
    return all(sum(1 for g in range(GUESTS) if s.has[g] == u) + sum(1 for v in s.rack if v == u) == 1 for u in range(UMBRELLAS))


@always
def no_trouble(s):
    """The kiosk does not jam."""
    return s.trouble == Trouble.NONE


@step
def first_come(s, t):
    """What is on the rack keeps its order, and what comes back goes to its end."""
    kept = min(len(s.rack), len(t.rack))
    return implies(len(s.rack) < len(t.rack), all(s.rack[i] == t.rack[i] for i in range(kept)))


def morning(s):
    """No loan was made yet."""
    return s.loans == 0


@quiescent(morning)
def all_back(s):
    """In the morning all umbrellas are on the rack."""
    return len(s.rack) == UMBRELLAS


@reachable
def runs_out(s):
    """No umbrella is left."""
    return len(s.rack) == 0


@latent
def last_one(s):
    """There is one umbrella left."""
    return len(s.rack) == 1


@observed
def seen(s, values):
    """A jammed kiosk shows that; else its guests by letter, its rack, and how many loans are left."""
    if s["trouble"] != "NONE":
        return {"trouble": s["trouble"]}
    guests = {chr(65 + g): u for g, u in enumerate(s["has"]) if u is not None}
    return {"guests": guests, "rack": s["rack"], "left": values["loans"] - s["loans"]}


@abstraction
def meant(shown, values, before):
    """The inverse; a jammed kiosk is otherwise as it was."""
    if "trouble" in shown:
        return {**before, "trouble": shown["trouble"]}
    has = [shown["guests"].get(chr(65 + g)) for g in range(values["guests"])]
    return {"has": has, "rack": shown["rack"], "loans": values["loans"] - shown["left"], "trouble": "NONE"}
