"""compare.py ONE OTHER [TOLERANCE]: whether two programs told the same steps and got to their end.

Without a tolerance all that they told must be the same to the last bit, what they read back at the end included. With
one, values may differ by that much of their size, and of what was read back nothing is known.
"""

import json
import sys


def told(path):
    with open(path, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines if line.startswith("{")]
    return [e for e in events if e["event"] == "step"], [e for e in events if e["event"] == "end"]


(steps, end), (others, other_end) = told(sys.argv[1]), told(sys.argv[2])
tolerance = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
wrong = [
    f"{one} is not {other}"
    for one, other in zip(steps, others)
    if one["step"] != other["step"] or not abs(one["value"] - other["value"]) <= tolerance * abs(one["value"])
]
if not tolerance and end != other_end:
    wrong.append(f"{end} is not {other_end}")
if not steps or len(steps) != len(others) or not end or not other_end:
    wrong.append(f"{len(steps)} and {len(others)} steps, {len(end)} and {len(other_end)} ends")
print("\n".join(wrong[:5]) or f"{len(steps)} steps are alike")
sys.exit(bool(wrong))
