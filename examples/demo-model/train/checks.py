"""Questions whether something is so, half of them to be denied, about every sort of fact."""

import facts as W
from orders import HASH, same
from skills import Item, article, cap, choose, number, stated
from wording import old_claims


# What skills.capital_check and skills.category put into the frames of wording.py.
STATEMENTS = {"is capital": (("{x} is the capital of {c}", "is {x} the capital of {c}"), ("the capital of {c} is {x}", "is the capital of {c} {x}"))}


def _other(r, values, right):
    return r.choice([v for v in values if v != right])


def _parts(r, held):
    """(kind, gaps without x, the right x, a wrong x, the fact as a sentence without its full stop)"""
    kind = r.choices(["is capital", "is in", "is spoken", "is coloured", "is opposite", "is plural", "is young", "is sum", "is parity", "is next", "is compared"], [5, 3, 3, 3, 3, 2, 1, 4, 2, 3, 3])[0]
    if kind in ("is capital", "is in", "is spoken"):
        c, city, where, tongue = r.choice(W.COUNTRIES)
        column = {"is capital": 1, "is in": 2, "is spoken": 3}[kind]
        right = (city, where, tongue)[column - 1]
        are = "are" if c in ("the Netherlands", "the Philippines", "the United States") else "is"
        fact = (f"the capital of {c} is {city}", f"{c} {are} in {where}", f"people in {c} speak {tongue}")[column - 1]
        return kind, dict(c=c), right, _other(r, [x[column] for x in W.COUNTRIES], right), fact
    if kind == "is coloured":
        w, right = r.choice(W.COLOURS)
        return kind, dict(w=w), right, _other(r, [x[1] for x in W.COLOURS], right), f"{w} is {right}"
    if kind == "is opposite":
        w, right = r.choice(W.OPPOSITES)
        if r.random() < 0.5:
            w, right = right, w
        return kind, dict(w=w), right, _other(r, [r.choice(p) for p in W.OPPOSITES if w not in p], right), f"the opposite of {w} is {right}"
    if kind == "is plural":
        w, right = r.choice(W.PLURALS)
        return kind, dict(w=w), right, w if w != right and r.random() < 0.5 else _other(r, [p[1] for p in W.PLURALS], right), f"the plural of {w} is {right}"
    if kind == "is young":
        w, b = r.choice(W.YOUNG)
        return kind, dict(w=w), article(b), article(_other(r, [p[1] for p in W.YOUNG], b)), f"a young {w} is called {article(b)}"
    if kind == "is sum":
        if r.random() < 0.6:
            a, op, b = number(r, held, lambda: (r.randint(0, 20), "+", r.randint(0, 20)))
            right = a + b
        else:
            a, op, b = number(r, held, lambda: (lambda x, y: (max(x, y), "-", min(x, y)))(r.randint(0, 20), r.randint(0, 20)))
            right = a - b
        e = r.choice([f"{a} {op} {b}", f"{a} {'plus' if op == '+' else 'minus'} {b}"])
        wrong = max(0, right + r.choice([-3, -2, -1, 1, 2, 3, 10])) if r.random() < 0.7 else r.randint(0, 40)
        return kind, dict(e=e), right, wrong if wrong != right else right + 1, f"{a} {op} {b} = {right}"
    if kind == "is parity":
        n, _ = number(r, held, lambda: (r.randint(0, 99), "even"))
        right = "odd" if n % 2 else "even"
        return kind, dict(n=n), right, "even" if n % 2 else "odd", f"{n} is {right}"
    if kind == "is next":
        k, names = r.choice([("day", W.DAYS), ("month", W.MONTHS)])
        i = r.randrange(len(names))
        right = names[(i + 1) % len(names)]
        return kind, dict(a=names[i], k=k), right, _other(r, names, right), f"{right} comes after {names[i]}"
    a, _, b = number(r, held, lambda: (lambda x, y: (x, "?", y if x != y else (y + 1) % 100))(r.randint(0, 99), r.randint(0, 99)), pair=True)
    right = "bigger" if a > b else "smaller"
    return kind, dict(a=a, b=b), right, "smaller" if a > b else "bigger", f"{a} is {right} than {b}"


def yes_no(r, held):
    if held and held != HASH:  # the other sets ask for capitals and kinds of things alone
        from skills import capital_check

        return capital_check(r, held)
    kind, gaps, right, wrong, fact = _parts(r, held)
    known = {same(p) for p in old_claims(STATEMENTS[kind])} if held and kind in STATEMENTS else ()
    order = choose(r, held, known, (), kind)
    yes = r.random() < 0.5
    ask = order.format(x=right if yes else wrong, **gaps)
    return Item("yes or no", cap(ask), stated(fact), "", cap(fact) + ".")

