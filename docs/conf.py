"""Sphinx configuration."""

from importlib.metadata import version as installed
from typing import Any

project = "privsweep"
author = "the privsweep authors"
version = release = installed("privsweep")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [  # objects without a page in this documentation
    ("py:class", r"(collections|pathlib|pyarrow|dp_accounting)\..*|PrivacyLossDistribution"),
    ("py:class", r"privcore\.(likelihood_ratio\..*|method\.P)"),
    (
        "py:class",
        r"storage\.(place\.folder\.Folder|sql\.query\.SqlFunction|verify\.Verification|manifest\.Manifest)",
    ),
    ("py:class", r"NDArray|np\..*|Plan|Schedule|flows\.answers\.sourced\.Sourced|privsweep\.words\.RunWords"),
    ("py:exc", r"\w+Error"),
]
autodoc_member_order = "bysource"
default_role = "code"
napoleon_use_ivar = True
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "privsweep"
html_copy_source = False
html_show_copyright = False


def _readable(*about: Any) -> tuple[str, str] | None:
    """Write the default of a field as dots if it is made by a function, since `<factory>` is no Python."""
    signature, returned = about[-2:]
    return signature and (signature.replace("<factory>", "..."), returned)


def setup(app: Any) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("autodoc-process-signature", _readable)
