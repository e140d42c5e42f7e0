#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs bare-metal guest programs, under vgic-vmm or under QEMU, and passes on the
# TAP that they print. A program that ends before it has reported all its tests,
# or prints no plan, has failed, whatever its exit status is.
set -uo pipefail

usage()
{
	cat <<END
Usage: tests/guest/run.sh [OPTIONS] [PROGRAM.bin...]

Without programs: all of BUILD/tests/guest, each with 1, 2 and 4 CPUs.

  --vmm FILE        the vgic-vmm to run them under (default: BUILD/vmm/vgic-vmm)
  --qemu            run them under QEMU's virt machine instead
  --build DIR       the build directory (default: build)
  --cpus N          only with so many CPUs
  --vcpu-ids LIST   ids of the vCPUs, for example 5,0 (vgic-vmm only)
END
}

vmm=
qemu=
build=build
cpus=
vcpu_ids=
while [ $# -gt 0 ]; do
	case $1 in
	--vmm) vmm=$2; shift ;;
	--qemu) qemu=yes ;;
	--build) build=$2; shift ;;
	--cpus) cpus=$2; shift ;;
	--vcpu-ids) vcpu_ids=$2; shift ;;
	--help) usage; exit 0 ;;
	-*) usage >&2; exit 2 ;;
	*) break ;;
	esac
	shift
done
: "${vmm:=$build/vmm/vgic-vmm}"

# run_guest PROGRAM CPUS: what the program prints.
run_guest()
{
	if [ -n "$qemu" ]; then
		# One thread for all CPUs: they wait for each other by spinning, which is slow on a host with fewer processors.
		timeout 60 qemu-system-aarch64 -machine virt,gic-version=3 -cpu cortex-a72 -accel tcg,thread=single \
			-smp "$2" -m 128 -display none -monitor none -serial stdio -no-reboot -kernel "$1" </dev/null
	else
		"$vmm" --kernel "$1" --cpus "$2" --memory 128M --virtual-time --timeout 60 \
			${vcpu_ids:+--vcpu-ids "$vcpu_ids"} </dev/null
	fi
}

# Passes TAP through; fails if a test failed, or if tests are missing.
check_tap()
{
	awk '
		{ print; fflush() }
		/^1\.\.[0-9]+/ { plan = substr($0, 4) + 0 }
		/^(not )?ok / { seen++ }
		/^not ok / { failed++ }
		/^Bail out!/ { bailed = 1 }
		END {
			if (!plan)
				print "Bail out! the program printed no plan"
			else if (seen != plan && !bailed)
				print "Bail out! " plan " tests were planned, " seen + 0 " reported"
			exit !plan || seen != plan || failed || bailed
		}'
}

if [ $# -eq 0 ]; then
	set -- "$build"/tests/guest/*.bin
	if [ ! -e "$1" ]; then
		echo "run.sh: there are no guest programs in $build/tests/guest: build them first" >&2
		exit 2
	fi
fi

failed=()
for program in "$@"; do
	for n in ${cpus:-1 2 4}; do
		[ $# -eq 1 ] && [ -n "$cpus" ] || echo "# $(basename "$program" .bin) with $n CPUs"
		run_guest "$program" "$n" | check_tap || failed+=("$(basename "$program" .bin)/$n")
	done
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "run.sh: failed: ${failed[*]}" >&2
	exit 1
fi
