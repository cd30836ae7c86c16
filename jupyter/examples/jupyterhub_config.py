# JupyterHub: each user's notebooks share the machine's GPUs, with an amount for each user. Copy what you need into your own
# jupyterhub_config.py; it works with every spawner that starts servers on this machine (LocalProcessSpawner, SudoSpawner, SystemdSpawner).
#
# Users need sluice-jupyter in the environment of their server, and the kernel of `jupyter sluice install`. The amounts
# below are what their kernels ask for. What they may ask for is bounded by the daemon: `bounds` in sluiced.conf(5).
c = get_config()  # noqa: F821 # JupyterHub gives it

AMOUNTS = {
    # group: (request of each kernel, limit of each kernel)
    "research": ("0.25", "0.8"),
    "students": ("0", "0.25"),
}


def amounts(user):
    """Those of the user's first group that has some; others share what is free."""
    for group in sorted(user.groups, key=lambda group: group.name):
        if group.name in AMOUNTS:
            return AMOUNTS[group.name]
    return ("0", "0.5")


def set_amounts(spawner):
    request, limit = amounts(spawner.user)
    spawner.environment.update(SLUICE_JUPYTER_REQUEST=request, SLUICE_JUPYTER_LIMIT=limit, SLUICE_JUPYTER_DETACH_AFTER="15m")


c.Spawner.pre_spawn_hook = set_amounts
# A server finds `sluice` and the daemon as the hub does.
c.Spawner.env_keep.extend(["PATH", "SLUICE_SOCKET", "SLUICE_JUPYTER_COMMAND"])
