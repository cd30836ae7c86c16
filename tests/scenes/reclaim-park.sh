#!/bin/sh
# Two projects share four GPUs: what stood above its quota is parked when the other wants its own, and goes on later from where
# it was. See reclaim.sh, also for what is off.
# shellcheck disable=SC2034 # it is for reclaim.sh
RECLAIM=park
. "$(dirname "$0")/reclaim.sh"
