"""Sphinx configuration."""

from importlib.metadata import version as installed

project = "privsweep"
author = "the privsweep authors"
version = release = installed("privsweep")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [  # objects without a page in this documentation
    ("py:class", r"(collections|pathlib|pyarrow)\..*|PrivacyLossDistribution"),
    ("py:class", r"privcore\.(likelihood_ratio\..*|method\.P)"),
    ("py:class", r"storage\.(folder\.Folder|verify\.Verification|manifest\.Manifest)"),
    ("py:class", r"flows\.runs\.run\.RunReport"),
    ("py:exc", r"\w+Error"),
]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "privsweep"
html_copy_source = False
html_show_copyright = False
