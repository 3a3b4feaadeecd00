"""Settings of Sphinx; `docs/site/build.py` copies this file beside the pages that it prepares."""

from trebuchet import __version__

project = "Trebuchet"
author = "the Trebuchet developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "trebuchet.docs.site.docstrings"]
root_doc = "index"

# Documents are Markdown, as a repository's web page shows them.
myst_heading_anchors = 4
myst_enable_extensions = ["tasklist"]

# Docstrings are numpydoc. Ports are in tables, so attributes without a description are left out.
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"

html_theme = "furo"
html_title = f"Trebuchet {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
