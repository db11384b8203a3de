"""The stable codes of what the spec language refuses at import: the rule, the fix, and a line that breaks it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """One rule of the subset."""

    rule: str
    fix: str
    example: str


CODES: dict[str, Code] = {
    "FP101": Code(
        "a statement outside the language",
        "use assignments, if, for, return, break, continue, pass, require() and calls",
        "with s.lock: …",
    ),
    "FP102": Code(
        "an expression outside the language",
        "use numbers, truth values, members, places, sets, comparisons, and all/any/sum over generators",
        "x = [b for b in s.free]",
    ),
    "FP103": Code("'while' is not part of the spec language", "use a for loop over a bound", "while s.free: …"),
    "FP104": Code("'for … else' is not part of the spec language", "set a flag in the loop", "for b in s.free: … else: …"),
    "FP105": Code(
        "a name that is not known here",
        "use locals, parameters, fields of the state, bounds, switches, whole-number constants, enumerations and helpers",
        "s.n = os.getpid()",
    ),
    "FP106": Code("helpers call each other in a circle", "write a loop over a bound", "def f(s): f(s)"),
    "FP107": Code(
        "a value of the wrong type", "make both sides numbers, truth values, members or places of one type", "if s.n: …"
    ),
    "FP108": Code(
        "a local that names a place is assigned twice",
        "use a second name; a place is named once",
        "q = s.free; q = s.used",
    ),
    "FP109": Code(
        "a sequence is changed while a loop runs over it",
        "collect first, change after the loop",
        "for b in s.free: s.free.remove(b)",
    ),
    "FP110": Code(
        "an annotation or type cannot be evaluated", "use names that the module has at import", "def a(s, r: NOSUCH)"
    ),
    "FP111": Code(
        "a declared function takes other parameters than its kind",
        "properties take the state (step properties also the successor); actions take the state, then their parameters",
        "@always def p(s, r): …",
    ),
    "FP112": Code(
        "a parameter cannot be enumerated",
        "annotate it with an index, Int(low, high), Bool or SetOf[index]",
        "@action def a(s, r): …",
    ),
    "FP113": Code("two declarations have one name", "rename one", "@action def a …; @action def a …"),
    "FP114": Code(
        "a property or condition changes the state", "properties only read; put changes in actions", "@always def p(s): s.n = 1"
    ),
    "FP115": Code(
        "a property or condition calls require()", "return the condition instead", "@always def p(s): require(s.n > 0)"
    ),
    "FP116": Code("division by something that is not constant", "divide by a number or bound", "x = s.n // s.m"),
    "FP117": Code(
        "a local may be used before it is assigned",
        "assign it before the branch or loop; loop variables end with their loop",
        "if c: x = 1\nreturn x",
    ),
    "FP118": Code(
        "a function that returns a value does not do so on every path",
        "end it with a return",
        "def f(s): if s.n > 0: return 1",
    ),
    "FP119": Code("a call that does not fit what is called", "check the number of arguments and the name", "s.free.push(1)"),
    "FP120": Code("a helper with default, keyword or starred parameters", "use plain parameters", "def f(s, n=1): …"),
    "FP121": Code(
        "a function that is not a plain function of a module",
        "write it with def at the top of a module, without decorators of other libraries",
        "pick = lambda s: s.n",
    ),
    "FP122": Code(
        "a string that is not a switch choice in a comparison", "compare a switch with one of its choices", 'x = "head"'
    ),
    "FP123": Code(
        "all(), any(), sum(), a set or a chain of comparisons changes something",
        "change the state in statements of their own",
        "any(take(s, b) for b in s.free)",
    ),
    "FP124": Code("a local changes its type", "use a second name", "x = 1; x = True"),
    "FP125": Code(
        "a method that this sequence does not have",
        "pop and remove go with scalars; drop_front, drop_back, remove_at and grow with records and containers",
        "e = s.entries.pop_front()",
    ),
    "FP126": Code(
        "a local that names an element of a sequence is used after the sequence has changed",
        "finish with the element before the sequence changes, or name it again under a second name",
        "e = s.entries[0]; s.entries.drop_front(); e.n = 1",
    ),
    "FP127": Code(
        "the variable of a quantifier has the name of another local",
        "choose a name of its own",
        "x = 1; any(x == 1 for x in s.q)",
    ),
    "FP128": Code(
        "a decorator that was not completed", "give it what it needs in parentheses: @quiescent(idle)", "@quiescent def p(s): …"
    ),
    "FP129": Code(
        "a loop that cannot have the invariant given for it",
        "let the function have one outermost loop, `for _ in range(N)`, without return in it, and call it in no other loop or "
        "quantifier; let the invariant name the locals that outlive a round, as what they are",
        "@loop_invariant(scan) def fits(s): …",
    ),
}
