#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests vgic-vmm from outside: its command line, its exit statuses, and what it
# says when a guest or a file is bad. Reports in TAP.
#
#   vmm-test.sh VGIC_VMM
#
# The guests are a few instructions each, written as words: no cross compiler is
# needed.
set -uo pipefail

if [ $# -ne 1 ]; then
	echo "usage: vmm-test.sh VGIC_VMM" >&2
	exit 2
fi
vmm=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

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

# write_words FILE WORD...: little-endian 32-bit words.
write_words()
{
	local file=$1 word bytes=
	shift
	for word; do
		bytes+="\\x${word:6:2}\\x${word:4:2}\\x${word:2:2}\\x${word:0:2}"
	done
	printf '%b' "$bytes" >"$file"
}

# expect NAME STATUS STDOUT STDERR OPTION...: run it, and compare. STDOUT must be equal; STDERR is a pattern for one
# line, or empty for nothing at all.
expect()
{
	local name=$1 status=$2 stdout=$3 stderr=$4 got ok=0
	shift 4
	timeout 60 "$vmm" "$@" </dev/null >out 2>err
	got=$?
	[ $got -eq "$status" ] || ok=1
	[ "$(cat out; echo .)" = "$stdout." ] || ok=1
	if [ -n "$stderr" ]; then
		grep -qE -- "$stderr" err || ok=1
	else
		[ ! -s err ] || ok=1
	fi
	report "$name" $ok
	[ $ok -eq 0 ] || {
		echo "# vgic-vmm $*"
		echo "# expected: status $status, output \"$stdout\", message \"$stderr\""
		echo "# got: status $got, output and message:"
		sed 's/^/# /' out err
	}
}

# expect_flat NAME STATUS STDOUT STDERR PROGRAM OPTION...: the same for a flat binary.
expect_flat()
{
	local program=$5
	expect "$1" "$2" "$3" "$4" --kernel "$program" --load-address 0x40080000 --memory 64 "${@:6}"
}

off='52b08000 72800100 d4000002' # mov w0, #0x84000000; movk w0, #8; hvc #0: PSCI SYSTEM_OFF
uart=d2a12001                    # mov x1, #0x9000000

# shellcheck disable=SC2086 # lists of words
write_programs()
{
	# Prints the string at its end.
	write_words hello $uart 100000a2 38401443 340000e3 39000023 17fffffd 6c6c6568 67202c6f 74736575 0000000a $off
	# Prints x, then PSCI SYSTEM_RESET by SMC.
	write_words reset $uart 52800f03 39000023 52b08000 72800120 d4000003
	# Prints the digit that it finds in memory, leaves 1 there, and resets.
	write_words memory $uart d2a82002 b9400043 1100c064 39000024 52800023 b9000043 52b08000 72800120 d4000003
	# Prints what it gets, up to a q.
	write_words echo $uart 52806023 b9003023 b9401823 3727ffe3 b9400023 b9000023 7101c47f 54ffff61 $off
	# Prints GICR_TYPER.Processor_Number of each redistributor as a digit.
	write_words ids $uart d2a10142 b9400843 53085c64 1100c084 39000024 91408042 3627ff63 $off
	# Accesses with the base register changed before, or after.
	write_words read d2a18001 91002022 b8404c43 14000000  # ldr w3, [x2, #4]! is the third
	write_words write d2a18001 528000e2 d503201f 38001422 # strb w2, [x1], #1 is the fourth
	write_words branch d2ae0001 d61f0020
	write_words sysreg d503201f d53bf200   # mrs x0, S3_3_C15_C2_0
	write_words novector d503201f d518cc00 # msr icc_iar1_el1, x0, which is UNDEFINED
	write_words wfi d503207f 14000000
	write_words spin 14000000
	write_words cpu_off 52b08000 72800040 d4000002
	# The same with vectors: prints ESR_EL1.IL, 1, from the handler.
	local padding=() i
	for ((i = 4; i < 0x200 / 4; i++)); do
		padding+=(00000000)
	done
	write_words undefined d2a80100 d518c000 d518cc00 14000000 "${padding[@]}" \
		d5385202 53197c42 1100c042 $uart 39000022 $off
	gzip -c hello >hello.gz
	head -c 40 hello.gz >cut.gz
	printf 'ab q' >input
	: >empty
	head -c 60 /dev/zero >input60
	head -c 64 /dev/zero >zeros
	printf '\177ELF%060d' 0 >elf
}

write_programs

expect 'no kernel is a usage error' 2 '' '--kernel is missing'
expect 'an unknown option is a usage error' 2 '' 'unrecognized option' --kernal x
expect 'something left over is a usage error' 2 '' 'no option: "x"' --kernel hello x
for bad in 0 513 x -1 1x ''; do
	expect "--cpus '$bad' is a usage error" 2 '' '--cpus needs' --kernel hello --cpus "$bad"
done
for bad in 3 x 1T 99999999999999999999 18446744073709551615G; do
	expect "--memory '$bad' is a usage error" 2 '' '--memory needs' --kernel hello --memory "$bad"
done
for bad in 0 -1 x nan inf 1x; do
	expect "--timeout '$bad' is a usage error" 2 '' '--timeout needs' --kernel hello --timeout "$bad"
done
for bad in '' ',' '1,' 1,1 65536 1,x -1; do
	expect "--vcpu-ids '$bad' is a usage error" 2 '' '--vcpu-ids needs' --kernel hello --vcpu-ids "$bad"
done
expect '--vcpu-ids must fit --cpus' 2 '' '2 numbers for 3 vCPUs' --kernel hello --vcpu-ids 1,2 --cpus 3
expect '--exit-on needs a text' 2 '' '--exit-on needs' --kernel hello --exit-on ''

"$vmm" --help >out 2>err && grep -q 'Examples' out && grep -q 'Exit status' out && [ ! -s err ]
report '--help shows examples and exit statuses' $?
"$vmm" --version >out 2>err && grep -qxE 'vgic-vmm [0-9]+\.[0-9]+' out && [ ! -s err ]
report '--version prints the version' $?

expect 'a kernel that is not there' 1 '' 'cannot read nothing: No such file' --kernel nothing
expect 'a kernel that is a directory' 1 '' 'no regular file' --kernel .
expect 'a kernel that is empty' 1 '' 'is empty' --kernel empty
expect 'a kernel that is too short' 1 '' 'too short for an arm64 kernel' --kernel hello
expect 'a kernel that is none' 1 '' 'magic number is missing' --kernel zeros
expect 'a kernel that is an ELF file' 1 '' 'ELF file.*objcopy' --kernel elf
expect_flat 'a compressed program that is cut short' 1 '' 'damaged or cut short' cut.gz
expect_flat 'an initial RAM disk that is not there' 1 '' 'cannot read nothing' hello --initrd nothing
expect 'a program outside of memory' 1 '' 'do not fit into memory' --kernel hello --load-address 0x1000
expect 'a program past the end of memory' 1 '' 'do not fit into memory.*--memory' \
	--kernel hello --load-address 0x43fffff0 --memory 64
expect 'a program at an odd address' 1 '' 'multiple of 4' --kernel hello --load-address 0x40080002
head -c 8388608 /dev/zero >large
expect_flat 'an initial RAM disk that is too large' 1 '' 'do not fit into memory beside' hello --memory 8 --initrd large

# Disks: what the command line and the file can have wrong.
for bad in '' ,readonly d,queues=0 d,queues=65 d,queues= d,vectors=1 d,vectors=66 d,readnoly d,queues=1,, d,; do
	expect "--disk '$bad' is a usage error" 2 '' 'the name of a file|1 to 64 queues|2 to 65 vectors|takes queues=N' \
		--kernel hello --disk "$bad"
done
seventeen=()
for ((i = 0; i < 17; i++)); do
	seventeen+=(--disk sectors)
done
head -c 1024 /dev/zero >sectors
expect 'a seventeenth disk is a usage error' 2 '' 'can be 16 disks' --kernel hello "${seventeen[@]}"
expect_flat 'there can be sixteen disks' 0 $'hello, guest\n' '' hello "${seventeen[@]:2}"
expect_flat 'a disk that is not there' 1 '' 'cannot open the disk nothing: No such file' hello --disk nothing
expect_flat 'a disk that is empty' 1 '' 'the disk empty has 0 bytes, but needs a multiple of 512' hello --disk empty
expect_flat 'a disk that ends within a sector' 1 '' 'has 60 bytes, but .*truncate' hello --disk input60
expect_flat 'a directory is no disk' 1 '' 'neither a file nor a block device' hello --disk .,readonly

# vhost-user-blk: what the command line and a back end that is none can do wrong. boot-test.sh has the real one.
for bad in '' ,queues=1 s,queues=0 s,queues=65 s,vectors=1 s,vectors=66 s,queues=x s,readonly s,; do
	expect "--vhost-user-blk '$bad' is a usage error" 2 '' 'the name of a socket|1 to 64 queues|2 to 65 vectors|takes queues=N' \
		--kernel hello --vhost-user-blk "$bad"
done
expect '--vhost-user-blk has no virtual time' 2 '' 'cannot go with --virtual-time' \
	--kernel hello --virtual-time --vhost-user-blk s
expect_flat 'a back end that is not there' 1 '' 'nobody listens at the socket ./s: start the back end first' hello \
	--vhost-user-blk ./s
# Accepts two connections; closes the first at once. On the second it sends a reply that is none, and reads on until the
# other end closes: one that is closed with something unread in it takes the reply along.
python3 - <<'END' &
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind('closes.new')
s.listen()
os.rename('closes.new', 'closes')
s.accept()[0].close()
c = s.accept()[0]
c.recv(24)
c.sendall(b'?' * 24)
while c.recv(24):
    pass
END
for ((i = 0; i < 200; i++)); do
	[ -S closes ] && break
	sleep 0.05
done
expect_flat 'a back end that goes away' 1 '' '^vgic-vmm: vhost-user-blk closes: the back end has closed' hello \
	--vhost-user-blk closes
expect_flat 'a back end that speaks another language' 1 '' 'the back end has sent message [0-9]+ .* where the reply' hello \
	--vhost-user-blk closes
wait $!
expect_flat 'a trace that cannot be written' 1 '' 'cannot write the trace' hello --trace-gic ./nothing/x
expect_flat 'an input that is not there' 1 '' 'cannot open nothing' hello --input nothing

expect_flat 'a guest prints and powers off' 0 $'hello, guest\n' '' hello
expect_flat 'a guest in real time' 0 $'hello, guest\n' '' hello --real-time
expect_flat 'a compressed guest' 0 $'hello, guest\n' '' hello.gz
expect_flat '--exit-on ends at its text, and the line' 0 $'hello, g\n' '' hello --exit-on 'o, g'
expect_flat '--exit-on finds a text that begins twice' 0 $'xxx\n' '' reset --exit-on xxx
expect_flat '--timeout ends a guest that does not' 3 '' 'vCPU 0: running, EL1, PC 0x0000000040080000' spin --timeout 0.2
"$vmm" --kernel reset --load-address 0x40080000 --memory 64 --timeout 0.2 </dev/null >out 2>err
[ $? -eq 3 ] && grep -qx 'x*' out
report '--timeout ends a guest that resets for ever' $?
expect_flat '--no-reboot ends at a reset' 4 $'x\n' 'has reset the machine' reset --no-reboot
expect_flat 'a reset clears the memory' 0 $'000\n' '' memory --exit-on 000 --timeout 20
expect_flat '--input is what is typed' 0 $'ab q\n' '' echo --input input
expect_flat 'the guest sees the ids of its vCPUs' 0 $'509\n' '' ids --vcpu-ids 5,0,9

expect_flat 'a read of what is not there' 1 '' \
	'^vgic-vmm: vCPU 0: read of 4 byte.* address 0xc00000c,.* PC 0x0000000040080008$' read
expect_flat 'a write to what is not there' 1 '' \
	'^vgic-vmm: vCPU 0: write of 0x7, 1 byte.* address 0xc000000,.* PC 0x000000004008000c$' write
expect_flat 'a branch to what is not there' 1 '' \
	'^vgic-vmm: vCPU 0: branch .* PC 0x0000000070000000, from the block at 0x0000000040080000$' branch
expect_flat 'an unknown system register' 1 '' \
	'^vgic-vmm: vCPU 0: read of system register S3_3_C15_C2_0,.* PC 0x0000000040080004$' sysreg
expect_flat 'an exception without a handler' 1 '' \
	'^vgic-vmm: vCPU 0: exception .* ELR_EL1 0x0000000040080004, ESR_EL1 0x2000000$' novector
expect_flat 'an undefined access to the CPU interface is an exception' 0 $'1\n' '' undefined
expect_flat 'a guest that waits for ever' 1 '' 'all vCPUs wait' wfi
expect_flat 'a guest that waits for ever beside its input' 1 '' 'all vCPUs wait' wfi --input large
expect_flat 'a guest that switched itself off' 1 '' 'all vCPUs are off' cpu_off

for run in a b; do
	"$vmm" --kernel ids --load-address 0x40080000 --vcpu-ids 5,0,9 --trace-gic trace.$run </dev/null >/dev/null
done
grep -qE '^0\.[0-9]{9} vcpu0 read GICR_TYPER of vcpu1 offset 0x00008 width 4 value 0x' trace.a
report '--trace-gic names the register and its redistributor' $?
cmp -s trace.a trace.b
report 'two runs make the same trace' $?
"$vmm" --kernel undefined --load-address 0x40080000 --trace-gic - </dev/null 2>err >/dev/null
grep -qE ' vcpu0 write ICC_IAR1_EL1 undefined$' err
report '--trace-gic shows what is undefined' $?

"$vmm" --kernel spin --load-address 0x40080000 </dev/null >/dev/null 2>err &
sleep 0.5
kill -TERM $!
wait $!
[ $? -eq 143 ] && [ ! -s err ]
report 'SIGTERM ends it as a signal does' $?
"$vmm" --kernel hello --load-address 0x40080000 </dev/null >/dev/full 2>err
[ $? -eq 1 ] && grep -q 'output cannot be written' err
report 'an output that takes nothing is an error' $?

echo "1..$count"
[ "$failed" -eq 0 ]
