#!/bin/sh
# The page alone, against a server that makes its states up: each view, keyboard, contrast, phone width, 200 workloads, hostile names.
# usage: sh tests/browser/page.sh
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/find.sh"
here=$(cd "$(dirname "$0")" && pwd)
parts=$("$here/../../tools/web-parts" page) || parts=$here/../../src/web/plain
exec timeout -k 5 580 "$SLUICE_NODE" "$here/page.mjs" "$here/../../src/web" "$parts"
