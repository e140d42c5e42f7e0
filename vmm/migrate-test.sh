#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Moves a running Linux from process to process: two vCPUs that write to two disks and
# check what they read are saved after so many instructions, and go on in a new
# process, again and again. Reports in TAP.
#
#   migrate-test.sh [--build DIR] [--vmm FILE] [--saves N] [--seed N]
#
# The saves (20 by default) fall on different moments: of the boot, with tables being
# set up, and of the load. Virtual time, in which the disks are served by the vCPUs'
# thread, and real time, in which they have threads that inject beside it, take turns;
# so do the two forms of the controller's state. --seed chooses other moments.
set -uo pipefail

src=$(cd "$(dirname "$0")" && pwd)
build=build
vmm=
saves=20
seed=1
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2; shift ;;
	--vmm) vmm=$2; shift ;;
	--saves) saves=$2; shift ;;
	--seed) seed=$2; shift ;;
	--help) sed -n '3,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) echo "migrate-test.sh: $1 is no option; --help shows what there is" >&2; exit 2 ;;
	esac
	shift
done
: "${vmm:=$build/vmm/vgic-vmm}"

# Unicorn leaks a little: in a build with AddressSanitizer that is no failure of ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

cpus=2
part=65536
timeout=120
command_line='console=ttyAMA0 panic=-1 cryptomgr.notests vgic.migrate'
complaints='nobody cared|ITS queue (timeout|not idle)|rcu:.*stall|lockup|BUG:|Oops|Kernel panic|Unable to handle'
complaints="$complaints|migrate: complaint"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=$seed

count=0
failed=0

# report NAME STATUS
report()
{
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		failed=$((failed + 1))
	fi
}

# run OPTION...: what the guest prints goes behind what it has printed before, what vgic-vmm says to $work/said.
run()
{
	"$vmm" --cpus $cpus --memory 128 --disk "$work/vda" --disk "$work/vdb,vectors=2" --no-reboot --timeout $timeout \
		"$@" </dev/null >>"$work/output" 2>"$work/said"
}

give_up()
{
	echo "# vgic-vmm said:"
	sed 's/^/# /' "$work/said"
	echo "# the end of what the guest has printed:"
	tr -d '\r' <"$work/output" | tail -n 40 | sed 's/^/# /'
	echo "1..$count"
	exit 1
}

# The instructions up to a save: the first are in the boot.
moment()
{
	if [ "$1" -le $((saves / 3)) ]; then
		echo $((RANDOM * 32768 % 120000000 / (saves / 3) + 60000000 / (saves / 3) + RANDOM))
	else
		echo $((RANDOM * 32768 % 40000000 + 5000000 + RANDOM))
	fi
}

# save NUMBER: go on with the machine, and save it again.
save()
{
	local number=$1 time=--virtual-time form=image from=()
	local after=(--save-after "$(moment "$1")")
	[ $((number % 2)) -eq 0 ] && time=--real-time
	[ $((number / 2 % 2)) -eq 0 ] && form=attributes
	if [ "$number" -eq 1 ]; then
		from=(--kernel "$build/guest/vmlinuz" --initrd "$build/guest/initrd.img" --append "$command_line")
	else
		from=(--load "$work/state.$((number - 1))")
	fi
	# Between boot and load: the rest of the boot.
	[ "$number" -eq $((saves / 3 + 1)) ] && after=(--save-at 'migrate: begin')
	run "${from[@]}" $time --save-gic $form --save-to "$work/state.$number" "${after[@]}" &&
		[ -s "$work/state.$number" ] # there is none if the guest has come to its end before
	report "save $number: $form, ${time#--}, ${after[*]:1}" $?
	[ "$failed" -eq 0 ] || give_up
	rm -f "$work/state.$((number - 1))"
}

# judge_part CPU DISK: what the guest says that it has written there is there.
judge_part()
{
	local sum
	sum=$(tail -c +$(($1 * part + 1)) "$work/$2" | head -c $part | sha256sum | cut -d ' ' -f 1)
	grep -q "^migrate: cpu $1 $2 rounds [0-9]* sha256 $sum" "$work/text"
	report "cpu $1: what was written last to $2 is there" $?
}

if ! "$src/make-guest-image.sh" "$build" >"$work/image" 2>&1; then
	sed 's/^/# /' "$work/image"
	echo 'Bail out! there is no guest image'
	exit 1
fi
truncate -s $((cpus * part)) "$work/vda" "$work/vdb"
for ((number = 1; number <= saves; number++)); do
	save $number
done
echo stop >"$work/typed"
run --load "$work/state.$saves" --virtual-time --input "$work/typed"
report "the last process: the guest heard what was typed, and powered off" $?
[ "$failed" -eq 0 ] || give_up
tr -d '\r' <"$work/output" >"$work/text"
grep -E '^migrate: cpu|ITS-MSI|arch_timer' "$work/text" | sed 's/^/# /'
grep -q '^migrate: done' "$work/text" && grep -q 'reboot: Power down' "$work/text"
report "the guest came to its end" $?
for disk in vda vdb; do
	for ((cpu = 0; cpu < cpus; cpu++)); do
		judge_part $cpu $disk
	done
done
! grep -qE "$complaints" "$work/text"
report "nothing was lost, stalled or complained about" $?
[ "$failed" -eq 0 ] || give_up
echo "1..$count"
