"""The headings of a page, as links name them."""

import functools
import re


@functools.cache
def of(page):
    """Lower case, blanks as dashes, without other punctuation, as GitHub writes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in found]
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain}
