"""compare.py ONE OTHER [TOLERANCE]: whether two programs told the same steps and got to their end.

Without a tolerance all that they told must be the same to the last bit, what they read back at the end included. With
one, values may differ by that much of their size, of a list that of its largest, and of what was read back nothing is
known; the largest such difference is printed, and that is all with --difference.
"""

import json
import sys


def told(path):
    with open(path, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines if line.startswith("{")]
    return [e for e in events if e["event"] == "step"], [e["data"] for e in events if e["event"] == "end"]


def values(step):
    return step["value"] if isinstance(step["value"], list) else [step["value"]]


def difference(one, other):
    """As a part of the size; 0 only of equals, and infinite for what is no number or has another length."""
    if values(one) == values(other):
        return 0.0
    size = max(abs(v) for v in values(one))
    apart = [abs(a - b) for a, b in zip(values(one), values(other))]
    known = len(values(one)) == len(values(other)) and all(a < float("inf") for a in apart) and size > 0
    return max(apart) / size if known else float("inf")


def first_apart(one, other):
    return next((f"{a} is not {b}" for a, b in zip(values(one), values(other)) if a != b), f"that is step {other['step']}")


(steps, end), (others, other_end) = told(sys.argv[1]), told(sys.argv[2])
only = sys.argv[3:] == ["--difference"]
tolerance = float(sys.argv[3]) if len(sys.argv) > 3 and not only else 0.0
apart = [difference(one, other) for one, other in zip(steps, others)]
if only:
    print(f"{max(apart):.1e}")
    sys.exit()
wrong = [
    f"step {one['step']}, {part:.1e} of its size apart: {first_apart(one, other)}"
    for one, other, part in zip(steps, others, apart)
    if one["step"] != other["step"] or not part <= tolerance
]
if not tolerance and end != other_end:
    wrong.append(f"{end} is not {other_end}")
if not steps or len(steps) != len(others) or not end or not other_end:
    wrong.append(f"{len(steps)} and {len(others)} steps, {len(end)} and {len(other_end)} ends")
largest = f", their values at most {max(apart, default=0):.1e} of their size apart" if tolerance else ""
print("\n".join(wrong[:5]) or f"{len(steps)} steps are alike{largest}")
sys.exit(bool(wrong))
