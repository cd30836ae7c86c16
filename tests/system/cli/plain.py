"""What the guide shows of a terminal, for its tests."""

import re


def console(path):
    """The page's console blocks."""
    with open(path, encoding="utf-8") as page:
        return re.findall(r"^```console\n(.*?)^```", page.read(), re.M | re.S)


def plain(text):
    """Numbers, times and blanks aside."""
    text = re.sub(r"(requested ).*\.\.$", r"\1cut", text, flags=re.M)  # after as much as the numbers leave
    text = re.sub(r"GPU-[0-9a-f-]{36}|GPU-\.\.\.", "UUID", text)
    text = re.sub(r"token=[0-9a-f]+", "token", text)
    text = re.sub(r"[0-9][0-9:.-]*( ?(ms|s|m|h|min|Ki|Mi|Gi|KiB|MiB|GiB|B|%))?(?![a-zA-Z])", "0", text)
    text = re.sub(r"\[[^][]*\]", "[bar]", text)
    return " ".join(text.split())
