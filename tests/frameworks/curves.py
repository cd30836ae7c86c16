"""curves.py FOLDER PAGE PICTURES: the pictures and tables of docs/frameworks.md, from what curves.sh and server.sh left in FOLDER.

Each picture has the losses by step, where all curves lie on each other, and by time, where they do not. The tables go
between the page's marks `<!-- NAME -->` and `<!-- end of NAME -->`. Nothing else on the page changes.
"""

import json
import re
import subprocess
import sys
from math import ceil
from pathlib import Path
from statistics import median

folder, page, pictures = (Path(word) for word in sys.argv[1:4])
PROGRAMS = {"tinygrad_convnet": "conv-net", "tinygrad_transformer": "transformer"}
# What, in words, and how it is drawn: width of the line and its dashes; wider ones lie below.
SCENES = {
    "cpu": ("CPU backend", "7", ""),
    "alone": ("under Sluice, alone", "4", ""),
    "one": ("beside two others that swap", "2", ""),
    "parked": ("parked half-way, resumed", "2", "3 5"),
}
WIDTH, HEIGHT, LEFT, TOP, BETWEEN = 400, 230, 56, 66, 70
# Steps before these compile.
WARM = 3


def steps(program, scene):
    with open(folder / f"{program}-{scene}", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return [e for e in events if e["event"] == "step"]


def ticks(least, most):
    """Round numbers from least to most, at most six."""
    for step in (part * 10.0**power for power in range(-4, 6) for part in (1, 2, 5)):
        if (most - least) / step <= 5:
            return [round(i * step, 4) for i in range(ceil(least / step), int(most / step) + 1)]
    return [least, most]


STYLE = """
svg { --back: #ffffff; --ink: #1f2328; --grid: #d8dee4; --cpu: #c9a227; --alone: #57a0e5; --one: #8a2f2b; --parked: #0b6e4f }
@media (prefers-color-scheme: dark) {
  svg { --back: #0d1117; --ink: #e6edf3; --grid: #30363d; --cpu: #8a6d0f; --alone: #2f6fb3; --one: #ffa198; --parked: #7ee787 }
}
text { font: 13px system-ui, sans-serif; fill: var(--ink) } .title { font-weight: 600; font-size: 15px }
.end { text-anchor: end } .middle { text-anchor: middle } .back { fill: var(--back) } .grid { stroke: var(--grid) }
polyline, .key { fill: none; stroke-linejoin: round }
""" + "\n".join(f".{s} {{ stroke: var(--{s}); stroke-width: {w}; stroke-dasharray: {d or 'none'} }}" for s, (_, w, d) in SCENES.items())


def panel(left, title, curves):
    """One pair of axes; curves: scene to points."""
    most_x = max(x for points in curves.values() for x, _ in points)
    heights = [y for points in curves.values() for _, y in points]
    room = (max(heights) - min(heights)) / 20
    least_y, most_y = min(heights) - room, max(heights) + room

    def at(x, y):
        return round(left + x / most_x * WIDTH, 1), round(TOP + HEIGHT - (y - least_y) / (most_y - least_y) * HEIGHT, 1)

    for y in ticks(least_y, most_y):
        yield f'<path class="grid" d="M{left} {at(0, y)[1]}h{WIDTH}"/>'
        yield f'<text class="end" x="{left - 8}" y="{round(at(0, y)[1] + 4, 1)}">{y:g}</text>'
    for x in ticks(0, most_x):
        yield f'<path class="grid" d="M{at(x, least_y)[0]} {TOP}v{HEIGHT}"/>'
        yield f'<text class="middle" x="{at(x, least_y)[0]}" y="{TOP + HEIGHT + 18}">{x:g}</text>'
    yield f'<text class="middle" x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 38}">{title}</text>'
    for scene, points in curves.items():
        line = " ".join(f"{x},{y}" for x, y in (at(*point) for point in points))
        yield f'<polyline class="{scene}" points="{line}"/>'


def picture(program, name):
    told = {scene: steps(program, scene) for scene in SCENES}
    begin = {scene: told[scene][0]["at"] for scene in SCENES}
    width, height = LEFT + 2 * WIDTH + BETWEEN + 20, TOP + HEIGHT + 50
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    yield f"<title>Loss of the {name}</title><style>{STYLE}</style>"
    yield '<rect class="back" width="100%" height="100%"/>'
    yield f'<text class="title" x="{LEFT}" y="22">Loss of the {name}, {len(told["cpu"])} steps</text>'
    x = LEFT
    for scene, (words, _, _) in SCENES.items():
        yield f'<path class="key {scene}" d="M{x} 44h28"/><text x="{x + 36}" y="48">{words}</text>'
        x += 70 + 8 * len(words)
    yield from panel(LEFT, "step", {s: [(e["step"], e["value"]) for e in told[s]] for s in SCENES})
    yield from panel(
        LEFT + WIDTH + BETWEEN,
        "seconds since the first step",
        {s: [(e["at"] - begin[s], e["value"]) for e in told[s]] for s in SCENES},
    )
    yield "</svg>"


def span(program, scene):
    """Seconds from the first step that compiled nothing to the last; what is parked half-way: without that step."""
    told = steps(program, scene)
    times = [later["at"] - one["at"] for one, later in zip(told[WARM:], told[WARM + 1 :])]
    return sum(times) - (max(times) if scene == "parked" else 0)


def apart(program, scene):
    compare = [sys.executable, Path(__file__).parent / "compare.py", *(folder / f"{program}-{s}" for s in ("cpu", scene))]
    return float(subprocess.check_output([*compare, "--difference"]))


def curve_rows():
    moves = {tuple(line.split()[:2]): line.split()[2:] for line in (folder / "moves").read_text().splitlines()}
    yield "| training | how | steps | largest difference from the CPU backend | time over alone | moves to the host, each | of all |"
    yield "|---|---|---|---|---|---|---|"
    for program, name in PROGRAMS.items():
        alone = span(program, "alone")
        for how, scenes in (
            ("CPU backend", ["cpu"]),
            ("under Sluice, alone", ["alone"]),
            ("three at once", ["one", "two", "three"]),
            ("parked half-way, resumed", ["parked"]),
        ):
            count = [moves.get((program, scene), ["0", "0"]) for scene in scenes]
            difference = "" if how == "CPU backend" else f"{max(apart(program, s) for s in scenes):.1e}"
            moved = " | " if how == "CPU backend" else f"{', '.join(c[0] for c in count)} | {sum(int(c[1]) for c in count)} MiB"
            ratio = median(span(program, s) for s in scenes) / alone
            yield f"| {name} | {how} | {len(steps(program, scenes[0]))} | {difference} | {ratio:.2f} | {moved} |"


def server_rows():
    words = {
        "cpu": "CPU backend",
        "plain": "without Sluice, alone",
        "alone": "under Sluice, alone",
        "beside": "under Sluice, beside a training",
    }
    yield "| server | answers | p50, ms | p99, ms | slowest, ms |"
    yield "|---|---|---|---|---|"
    for line in (folder / "answers").read_text().splitlines():
        what, *figures = line.split()
        yield f"| {words[what]} | {' | '.join(figures)} |"


text = page.read_text()
for mark, rows in (("curves", curve_rows()), ("answers", server_rows())):
    between = re.compile(f"(<!-- {mark} -->\n).*(<!-- end of {mark} -->)", re.S)
    if not between.search(text):
        sys.exit(f"{page} has no place for {mark}")
    table = "\n".join(rows)
    text = between.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)
pictures.mkdir(exist_ok=True)
for program, name in PROGRAMS.items():
    (pictures / f"loss-{name}.svg").write_text("\n".join(picture(program, name)) + "\n")
page.write_text(text)
