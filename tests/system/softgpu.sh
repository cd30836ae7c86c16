#!/bin/sh
# Rules of the software GPU that hang on a setting of its box: each is seen with the setting and without.
# Durations are compared with a lowest value alone.
export LIMIT=150
. "$(dirname "$0")/lib.sh"
software_only "settings of a box"
# rule NAME OPTION...: runs a rule in a box of its own; its answers lie in $T/NAME.
rule() {
	rule_name=$1
	shift
	"$B/sluice" softgpu "$@" -- "$B/tests/system/box-rules" "$rule_name" >"$T/$rule_name" 2>"$T/$rule_name.err"
	check "$rule_name $*: status" $? = 0
	[ "$rule_name" = absent ] || cat "$T/$rule_name.err"
}
# seen NAME KEY: what it said
seen() { sed -n "s/^{\"$2\":\([0-9]*\)}\$/\1/p" "$T/$1" | tail -n 1; }

rule queue --queue 8
check "calls that returned while a queue of 8 was held" "$(seen queue while_held)" -le 8
check "and in the end" "$(seen queue at_the_end)" = 20
rule queue
check "without a limit to speak of" "$(seen queue while_held)" = 20

rule link --h2d 64MiB --d2h 256MiB
check "16 MiB in at 64 MiB/s" "$(seen link in_ms)" -ge 240
check "out at 256 MiB/s" "$(seen link out_ms)" -ge 60
check "in while the way out is busy, at half the speed" "$(seen link in_beside_out_ms)" -ge 400
rule link --h2d 1GiB --d2h 64MiB --duplex 100
check "the ways have speeds of their own" "$(seen link out_ms)" -ge 240

rule share --h2d 64MiB --d2h 64MiB --pin-us 10000
check "16 MiB each of two processes, over one link" "$(seen share both_ms)" -ge 400
check "pinned at 10 ms a MiB" "$(seen share pin_ms)" -ge 160
check "what is not pinned takes twice as long" "$(seen share plain_ms)" -ge 480
rule share --h2d 64MiB --d2h 64MiB --pageable 100
check "unless told otherwise" "$(seen share plain_ms)" -ge 240

rule handles --create-us 20000 --map-us 10000 --release-us 10000
check "ten handles at 20 ms" "$(seen handles create_ms)" -ge 200
check "access to ten at 10 ms" "$(seen handles access_ms)" -ge 100
check "ten released at 10 ms" "$(seen handles release_ms)" -ge 100

rule stale
check "created memory holds rubbish" "$(seen stale not_zero)" = 1
rule stale --stale 0
check "unless told not to" "$(seen stale not_zero)" = 0

rule deny --memory 1GiB --deny-mib 256
check "free as ever" "$(seen deny free_mib)" -ge 900
check "and out of memory" "$(seen deny result)" = 2
rule deny --memory 1GiB
check "not without it" "$(seen deny result)" = 0

rule hidden --module 64MiB --launch 96MiB --memory 2GiB
check "a module takes" "$(seen hidden module_mib)" -ge 64
check "a first launch takes" "$(seen hidden launch_mib)" -ge 96
check "a second one nothing" "$(seen hidden second_mib)" = 0

rule teardown --teardown-ms 5000 --memory 1GiB
check "memory of the dead that came back at once" "$(seen teardown back_at_once_mib)" = 0
check "and later" "$(seen teardown back_later_mib)" -ge 256

rule lag --nvml-lag-ms 2000 --memory 1GiB
check "times NVML was behind" "$(seen lag unaware)" -ge 3
check "and knew later" "$(seen lag told_later)" = 1
rule lag --memory 1GiB
check "without a lag" "$(seen lag unaware)" = 0

rule end
check "a call behind the driver's end" "$(seen end at_exit)" = 4

rule absent
check "what is not modelled answers" "$(seen absent result)" = 801
check "and says so once" "$(grep -c 'cuCoredumpGetAttribute is not modelled' "$T/absent.err")" = 1
"$B/sluice" softgpu --cuda 12040 -- "$B/tests/contract/contract" --only proc_address_13 >"$T/old"
check "the driver can be one of CUDA 12" "$(grep -c '^skip proc_address_13' "$T/old")" = 1
finish
