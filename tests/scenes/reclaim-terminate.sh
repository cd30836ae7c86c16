#!/bin/sh
# Two projects share four GPUs: what stood above its quota is ended when the other wants its own, and begun anew
# later. See reclaim.sh, also for what is off.
# shellcheck disable=SC2034 # it is for reclaim.sh
RECLAIM=terminate
. "$(dirname "$0")/reclaim.sh"
