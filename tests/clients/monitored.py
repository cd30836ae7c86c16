"""How a monitor says what it sees: lines that must be the same with and without Sluice, and figures
("~ ...") that the test compares with the workload's share."""


def say(what, value):
    print(f"{what}: {value}", flush=True)


def figure(what, value):
    print(f"~ {what} {value}", flush=True)
