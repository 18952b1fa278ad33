"""Symbols of parameters for a page: plain letters instead of LaTeX that is simple enough."""

import re

_LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "varepsilon": "ε",
    "epsilon": "ε",
    "eta": "η",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "ell": "ℓ",
    "le": "≤",
    "dots": "…",
}
_ASKED = {"epsilon": r"\varepsilon", "delta": r"\delta"}


def plain(latex: str) -> str:
    r"""Return a symbol in Unicode, or an empty text if that would not be readable.

    Example:
        >>> plain(r"\sigma"), plain("c'"), plain(r"1 - \tau"), plain(r"\varepsilon_0"), plain("-")
        ('σ', 'c′', '1 − τ', 'ε₀', '')
    """
    text = re.sub(r"\\([a-z]+) ?", lambda found: _LETTERS.get(found[1], "\\"), latex)
    text = re.sub(r"_([0-9])", lambda found: "₀₁₂₃₄₅₆₇₈₉"[int(found[1])], text)
    text = text.replace("'", "′").replace(" - ", " − ")
    return "" if text == "-" or re.search(r"[\\{}_^$]", text) else text


def asked(quantity: str) -> str:
    r"""Return the quantity of a problem in LaTeX.

    Example:
        >>> asked("epsilon"), asked("advantage")
        ('\\varepsilon', '\\mathrm{advantage}')
    """
    return _ASKED.get(quantity, rf"\mathrm{{{quantity}}}")
