#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Boots Debian's kernel without a terminal and judges what it saw of the interrupt
# controller. Reports in TAP; the guest's /proc/interrupts are in the comments.
#
#   boot-test.sh [--build DIR] [--vmm FILE] [CASE...]
#
# Cases, all of them by default:
#   1cpu    one vCPU, a disk
#   2cpus   two vCPUs, two disks: one with a vector for each queue, one whose vector is moved under load
#   ids     two vCPUs whose libvgic ids are 5 and 0
#   repeat  two runs in virtual time print, and do to the controller, the same
#   vhost1  one vCPU in real time, disks of another process and of a thread; the process is killed at the end
#   vhost2  the same with two vCPUs, and a third disk whose vector is moved under load
set -uo pipefail

src=$(cd "$(dirname "$0")" && pwd)
build=build
vmm=
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2; shift ;;
	--vmm) vmm=$2; shift ;;
	--help) sed -n '3,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
	-*) echo "boot-test.sh: $1 is no option; --help shows what there is" >&2; exit 2 ;;
	*) break ;;
	esac
	shift
done
: "${vmm:=$build/vmm/vgic-vmm}"
[ $# -gt 0 ] || set -- 1cpu 2cpus ids repeat vhost1 vhost2

# Unicorn leaks a little: in a build with AddressSanitizer that is no failure of ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

timeout=250
time=virtual
# The kernel's self-test of its cryptography takes as long as all the rest, and has nothing to do with interrupts.
command_line='console=ttyAMA0 panic=-1 cryptomgr.notests'
complaints='nobody cared|ITS queue (timeout|not idle)|rcu:.*stall|lockup|BUG:|Oops|Kernel panic|Unable to handle'
complaints="$complaints|selftest: complaint"

work=$(mktemp -d)
back_end=
clean_up()
{
	[ -z "$back_end" ] || kill -9 "$back_end" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT

count=0
failed=0

comment()
{
	sed 's/^/# /'
}

# report NAME STATUS: one test, passed if the status is 0.
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

# The guest throws away what is in the UART's FIFO when it opens it, 16 characters.
printf '################\nanyone there?\n' >"$work/typed"

# boot OUTPUT APPEND OPTION...: run the guest; what it prints and says goes to OUTPUT.
boot()
{
	local output=$1 append=$2 status
	shift 2
	"$vmm" --kernel "$build/guest/vmlinuz" --initrd "$build/guest/initrd.img" --append "$command_line $append" \
		--$time-time --no-reboot --timeout $timeout --input "$work/typed" "$@" </dev/null >"$output.raw" 2>&1
	status=$?
	tr -d '\r' <"$output.raw" >"$output"
	return $status
}

# The guest's /proc/interrupts, out of its output.
interrupts()
{
	sed -n '/^selftest: \/proc\/interrupts/,/^selftest: end of/p' "$1" | grep -v '^selftest'
}

# counted NAME CPUS OUTPUT: has the interrupt of that name a count above zero on every CPU?
counted()
{
	interrupts "$3" | awk -v name="$1" -v cpus="$2" '
		index($0, name) {
			found = 1
			for (i = 2; i <= cpus + 1; i++)
				if ($i !~ /^[0-9]+$/ || $i + 0 == 0)
					bad = 1
		}
		END { exit !found || bad }'
}

# The UART's interrupt goes to one CPU or another.
counted_anywhere()
{
	interrupts "$3" | awk -v name="$1" -v cpus="$2" '
		index($0, name) { for (i = 2; i <= cpus + 1; i++) sum += $i }
		END { exit sum == 0 }'
}

ran_everywhere()
{
	local cpu
	for ((cpu = 0; cpu < $1; cpu++)); do
		grep -qx "selftest: cpu $cpu ran user space on cpu $cpu" "$2" || return 1
	done
}

# judge NAME CPUS OUTPUT STATUS: what every boot has to show.
judge()
{
	local name=$1 cpus=$2 output=$3 status=$4 before=$failed

	interrupts "$output" | comment
	ran_everywhere "$cpus" "$output"
	report "$name: user space ran on every vCPU" $?
	counted arch_timer "$cpus" "$output"
	report "$name: the timer's interrupt was counted on every vCPU" $?
	if [ "$cpus" -gt 1 ]; then
		counted 'Rescheduling interrupts' "$cpus" "$output"
		report "$name: rescheduling IPIs were counted on every vCPU" $?
		counted 'Function call interrupts' "$cpus" "$output"
		report "$name: function call IPIs were counted on every vCPU" $?
		grep -qx 'selftest: cpu 1 was off, and ran user space on cpu 1' "$output"
		report "$name: a vCPU was switched off and on" $?
	fi
	grep -q 'ITS@.*: allocated .* Devices' "$output" && grep -q 'ITS@.*: allocated .* Interrupt Collections' "$output" &&
		[ "$(grep -c 'CPU[0-9]*: using allocated LPI pending table' "$output")" -ge "$cpus" ]
	report "$name: the kernel found the ITS and allocated its tables" $?
	counted_anywhere uart-pl011 "$cpus" "$output" && grep -qE '^selftest: typed: .*there\?$|^anyone there\?$' "$output"
	report "$name: the UART's interrupt brought what was typed" $?
	! grep -qE "$complaints" "$output"
	report "$name: the kernel complained about nothing" $?
	[ "$status" -eq 0 ] && grep -q 'selftest: done' "$output" && grep -q 'reboot: Power down' "$output"
	report "$name: the guest powered off by PSCI" $?
	if [ "$failed" -gt "$before" ]; then
		echo "# $name: vgic-vmm ended with status $status; its output:"
		comment <"$output"
	fi
}

# ---- Disks ----

# make_disk NAME FIRST: half a MiB of numbers. The guest copies its first half to the second.
make_disk()
{
	seq "$2" 999999 | head -c 524288 >"$work/$1.disk"
	sha256sum <"$work/$1.disk" | cut -d ' ' -f 1 >"$work/$1.sum"
	head -c 262144 "$work/$1.disk" >"$work/$1.half"
}

# judge_disk NAME OUTPUT DISK FILE: the guest has read all of it, and what it wrote is in the file.
judge_disk()
{
	grep -qF "selftest: disk $3 sha256 $(cat "$work/$4.sum") " "$2"
	report "$1: $3: all of the disk was read right" $?
	grep -qx "selftest: disk $3 read back what was written" "$2" &&
		cat "$work/$4.half" "$work/$4.half" | cmp -s - "$work/$4.disk"
	report "$1: $3: what was written is on the disk" $?
	grep -qx "selftest: disk $3 was found again by its driver" "$2"
	report "$1: $3: a driver that starts anew finds the disk" $?
}

# judge_vectors NAME CPUS OUTPUT: MSIs have come on every vCPU.
judge_vectors()
{
	interrupts "$3" | awk -v cpus="$2" '
		/ITS-MSI/ && !/-config/ { for (i = 2; i <= cpus + 1; i++) sum[i] += $i }
		END { for (i = 2; i <= cpus + 1; i++) if (sum[i] == 0) exit 1 }'
	report "$1: the interrupts of disks were counted on every vCPU" $?
}

# judge_moves NAME OUTPUT DEVICE: with a new affinity none came on the old CPU any more.
judge_moves()
{
	[ "$(grep -cx "selftest: $3-virtqueues moved to cpu [01]: 0 came elsewhere" "$2")" -eq 5 ]
	report "$1: $3: the interrupt went where its affinity said, five times" $?
}

case_1cpu()
{
	make_disk 1cpu 1
	boot "$work/1cpu" vgic.selftest --cpus 1 --disk "$work/1cpu.disk"
	judge 1cpu 1 "$work/1cpu" $?
	judge_vectors 1cpu 1 "$work/1cpu"
	judge_disk 1cpu "$work/1cpu" vda 1cpu
}

case_2cpus()
{
	make_disk 2cpus.a 1
	make_disk 2cpus.b 2
	boot "$work/2cpus" vgic.selftest --cpus 2 --disk "$work/2cpus.a.disk" --disk "$work/2cpus.b.disk,vectors=2"
	judge 2cpus 2 "$work/2cpus" $?
	judge_vectors 2cpus 2 "$work/2cpus"
	judge_disk 2cpus "$work/2cpus" vda 2cpus.a
	judge_disk 2cpus "$work/2cpus" vdb 2cpus.b
	judge_moves 2cpus "$work/2cpus" virtio1
}

# GICR_TYPER.Processor_Number, bits 23:8, is the id and not the place in the order.
carries_id()
{
	local value
	value=$(awk -v name="vcpu$1" '/ read GICR_TYPER of / && $6 == name { print $NF; exit }' "$work/ids.trace")
	[ -n "$value" ] && [ $(((value >> 8) & 0xffff)) -eq "$2" ]
}

case_ids()
{
	boot "$work/ids" vgic.selftest --cpus 2 --vcpu-ids 5,0 --trace-gic "$work/ids.trace"
	judge ids 2 "$work/ids" $?
	carries_id 0 5 && carries_id 1 0
	report "ids: the redistributors carry the ids" $?
}

# Up to where both vCPUs run and have signalled each other: that is quick, and the rest of a boot is no different.
case_repeat()
{
	local run
	for run in a b; do
		boot "$work/repeat.$run" vgic.selftest --cpus 2 --exit-on 'Switched to clocksource' \
			--trace-gic "$work/trace.$run"
		report "repeat: run $run came to the end" $?
	done
	cmp "$work/repeat.a.raw" "$work/repeat.b.raw" 2>&1 | comment
	cmp -s "$work/repeat.a.raw" "$work/repeat.b.raw" && [ -s "$work/repeat.a.raw" ]
	report "repeat: both runs printed the same bytes" $?
	cmp "$work/trace.a" "$work/trace.b" 2>&1 | comment
	cmp -s "$work/trace.a" "$work/trace.b" && grep -q 'vcpu1 read ICC_IAR1_EL1 acknowledged' "$work/trace.a"
	report "repeat: both runs did the same to the interrupt controller" $?
}

# ---- Disks of another process ----

# start_back_end QUEUES DISK...: each at a socket of its name. It listens when this returns.
start_back_end()
{
	local queues=$1 disk arguments=()
	shift
	if ! command -v qemu-storage-daemon >/dev/null; then
		echo 'Bail out! qemu-storage-daemon is missing: it is in the package qemu-system-common'
		exit 1
	fi
	for disk; do
		arguments+=(--blockdev "driver=file,node-name=$disk,filename=$work/$disk.disk"
			--export "type=vhost-user-blk,id=$disk.export,node-name=$disk,writable=on,num-queues=$queues,addr.type=unix,addr.path=$work/$disk.sock")
	done
	qemu-storage-daemon --daemonize --pidfile "$work/back_end.pid" "${arguments[@]}" 2>&1 | comment
	back_end=$(cat "$work/back_end.pid")
}

# Wait for the guest to say that it is ready for it.
end_back_end()
{
	while kill -0 "$1" 2>/dev/null && ! grep -q 'selftest: waiting for the end' "$2"; do
		sleep 0.2
	done
	kill -9 "$back_end"
	back_end=
}

# vhost NAME CPUS OPTION...: disk vda of the other process, which is killed; the others as the options say.
vhost()
{
	local name=$1 cpus=$2 output=$work/$1 vmm_pid status
	shift 2
	time=real
	: >"$output.raw"
	boot "$output" 'vgic.selftest vgic.gone=vda' --cpus "$cpus" --vhost-user-blk "$work/$name.a.sock" "$@" &
	vmm_pid=$!
	end_back_end $vmm_pid "$output.raw"
	wait $vmm_pid
	status=$?
	time=virtual
	judge "$name" "$cpus" "$output" $status
	judge_vectors "$name" "$cpus" "$output"
	judge_disk "$name" "$output" vda "$name.a"
	judge_disk "$name" "$output" vdb "$name.b"
	[ "$(grep -c "^vgic-vmm: vhost-user-blk .*a.sock: the back end has closed the connection" "$output")" -eq 1 ]
	report "$name: the end of the back end was reported, once" $?
	grep -qx 'selftest: vda said that its back end is gone' "$output"
	report "$name: the guest was told, and went on" $?
}

case_vhost1()
{
	make_disk vhost1.a 1
	make_disk vhost1.b 2
	start_back_end 1 vhost1.a
	vhost vhost1 1 --disk "$work/vhost1.b.disk"
}

case_vhost2()
{
	make_disk vhost2.a 1
	make_disk vhost2.b 2
	make_disk vhost2.c 3
	start_back_end 2 vhost2.a vhost2.c
	vhost vhost2 2 --disk "$work/vhost2.b.disk" --vhost-user-blk "$work/vhost2.c.sock,vectors=2"
	judge_disk vhost2 "$work/vhost2" vdc vhost2.c
	judge_moves vhost2 "$work/vhost2" virtio2
}

if ! "$src/make-guest-image.sh" "$build" >"$work/image" 2>&1; then
	comment <"$work/image"
	echo 'Bail out! there is no guest image'
	exit 1
fi
[ -x "$vmm" ] || {
	echo "Bail out! $vmm is not built"
	exit 1
}
for name; do
	if ! declare -F "case_$name" >/dev/null; then
		echo "Bail out! there is no case $name"
		exit 2
	fi
	"case_$name"
done
echo "1..$count"
[ "$failed" -eq 0 ]
