#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the files of saved machines from outside: what is in them, and what is refused.

    snapshot-test.py VGIC_VMM [--rounds N] [--seed N] [--guests DIR [--growth X]]

Small guests are saved and continued; then their files are cut, damaged and forged, with
right checksums, and have to be refused with a message, or to run: never to crash. This
is a second implementation of the container that docs/vmm-snapshot.md describes. The
programs of tests/guest, in DIR, are saved again and again while they use the controller
in every way, and have to see what they see without that. Reports in TAP.
"""
import argparse
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

UART = 0xd2a12001  # mov x1, #0x9000000
OFF = [0x52b08000, 0x72800100, 0xd4000002]  # PSCI SYSTEM_OFF
HELLO = [UART, 0x100000a2, 0x38401443, 0x340000e3, 0x39000023, 0x17fffffd,
         0x6c6c6568, 0x67202c6f, 0x74736575, 0x0000000a] + OFF
# Counts in v0 and x4 to 2^24, and prints A if they are the same.
COUNT = [
    UART,
    0xd2800004,              # mov  x4, #0
    0x4f000400,              # movi v0.4s, #0
    0x4f000421,              # movi v1.4s, #1
    0x91000484,              # 1: add x4, x4, #1
    0x4ea18400,              # add  v0.4s, v0.4s, v1.4s
    0xd358fc85,              # lsr  x5, x4, #24
    0xb4ffffa5,              # cbz  x5, 1b
    0x0e0c3c06,              # umov w6, v0.s[1]
    0x6b0400df, 0x1a9f07e7,  # cmp  w6, w4; cset w7, ne
    0x110104e7,              # add  w7, w7, #'A'
    0x39000027,              # strb w7, [x1]
] + OFF
FPEN = [0xd2a00600, 0xd5181040, 0xd5033fdf]  # mov x0, #3 << 20; msr cpacr_el1, x0; isb
SPIN = [0x14000000]
# Raises SPI 40 by the test device, prints x; then whether it is pending, and again after lowering it.
LINE = [
    UART,
    0xd2a14002,              # mov  x2, #0xa000000
    0xd2a10005,              # mov  x5, #0x8000000
    0x52800503, 0x72b00003,  # mov  w3, #40 | 1 << 31
    0xb9000043,              # str  w3, [x2]
    0x52800f04, 0x39000024,  # 'x'
    0x14000001,              # b    .+4, behind which the machine is saved
    0xb94204a6,              # ldr  w6, [x5, #GICD_ISPENDR1]
    0x530820c6,              # ubfx w6, w6, #8, #1
    0x1100c0c6, 0x39000026,  # print it
    0x52800503, 0xb9000043,  # lower it
    0xb94204a6, 0x530820c6, 0x1100c0c6, 0x39000026,
] + OFF
# Counts to 2^20, so that time passes. Prints x, then 0 if less than 1024 ticks of the counter have passed, in virtual time.
CLOCK = [
    UART,
    0xd2a00209,              # mov  x9, #1 << 20
    0xf1000529,              # 1: subs x9, x9, #1
    0x54ffffe1,              # b.ne 1b
    0x52800f04,              # mov  w4, #'x'
    0xd53be047,              # mrs  x7, cntvct_el0
    0x39000024,              # strb w4, [x1]
    0x14000001,              # b    .+4
    0xd53be048,              # mrs  x8, cntvct_el0
    0xcb070108,              # sub  x8, x8, x7
    0xd34afd08,              # lsr  x8, x8, #10
    0x9100c108, 0x39000028,  # print it
] + OFF

# Counts to 2^21, so that input arrives, prints x, then sends back what is typed until the end of a line. The UART has its
# FIFO, and is on.
ECHO = [
    UART,
    0x52800e02, 0xb9002c22,  # LCR_H: 8 bits, FIFO
    0x52806022, 0xb9003022,  # CR: on
    0xd2a00409,              # mov x9, #1 << 21
    0xf1000529, 0x54ffffe1,  # 1: subs x9, x9, #1; b.ne 1b
    0x52800f04, 0x39000024,  # 'x'
    0x14000001,              # b    .+4
    0xb9401825,              # 1: ldr w5, [x1, #UARTFR]
    0x3727ffe5,              # tbnz w5, #4, 1b
    0x39400024, 0x39000024,  # send back
    0x7100289f,              # cmp  w4, #10
    0x54ffff61,              # b.ne 1b
] + OFF
# Prints x, then PSCI SYSTEM_RESET.
RESET = [UART, 0x52800f04, 0x39000024, 0x14000001, 0x52b08000, 0x72800120, 0xd4000002]

HEADER = struct.Struct('<8sII')
HEAD = struct.Struct('<8sIIQ')


def parse(data):
    """The sections as [tag, number, payload], without the end."""
    magic, version, crc = HEADER.unpack_from(data)
    assert magic == b'VGIC-VMM' and version == 2 and crc == zlib.crc32(data[:12])
    at = HEADER.size
    sections = []
    while True:
        tag, number, crc, length = HEAD.unpack_from(data, at)
        payload = data[at + HEAD.size:at + HEAD.size + length]
        head = data[at:at + HEAD.size]
        assert len(payload) == length and crc == zlib.crc32(head[:12] + head[16:] + payload)
        at += HEAD.size + length
        tag = tag.rstrip(b'\0').decode()
        if tag == 'end':
            assert number == len(sections) and length == 0 and at == len(data)
            return sections
        sections.append([tag, number, payload])


def build(sections, version=2, end=None):
    """A file with right checksums."""
    start = struct.pack('<8sI', b'VGIC-VMM', version)
    out = [start, struct.pack('<I', zlib.crc32(start))]
    for tag, number, payload in sections + [['end', len(sections) if end is None else end, b'']]:
        first = struct.pack('<8sI', tag.encode(), number)
        last = struct.pack('<Q', len(payload))
        out += [first, struct.pack('<I', zlib.crc32(first + last + payload)), last, payload]
    return b''.join(out)


class Test:
    def __init__(self, vmm):
        self.vmm = vmm
        self.count = 0
        self.failed = 0

    def report(self, name, ok, *comments):
        self.count += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name}", flush=True)
        for comment in comments if not ok else ():
            print('#', str(comment).replace('\n', '\n# '), flush=True)

    def run(self, *options):
        return subprocess.run([self.vmm, *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, text=True, errors='replace')

    def expect(self, name, result, status, message='', output=None):
        ok = result.returncode == status and message in result.stderr
        ok = ok and (output is None or result.stdout == output)
        self.report(name, ok, result)


def program(name, words):
    with open(name, 'wb') as f:
        f.write(b''.join(struct.pack('<I', word) for word in words))


def boot(name, *options):
    return ['--kernel', name, '--load-address', '0x40080000', *MACHINE, *options]


MACHINE = ['--memory', '16']


def load(*options):
    return ['--load', 'state', *MACHINE, *options]


def write(data, name='state'):
    with open(name, 'wb') as f:
        f.write(data)


def read(name='state'):
    with open(name, 'rb') as f:
        return f.read()


def continued(t):
    for form in 'image', 'attributes':
        for mode in '--virtual-time', '--real-time':
            r = t.run(*boot('hello', mode, '--save-to', 'state', '--save-at', 'o, g', '--save-gic', form))
            rest = t.run(*load(mode))
            t.report(f'{form}, {mode[2:]}: what the guest prints goes on where it was saved',
                     r.returncode == 0 and rest.returncode == 0 and 'o, g' in r.stdout and
                     r.stdout + rest.stdout == 'hello, guest\n', r, rest)
    typed(t)
    t.run(*boot('hello', '--real-time', '--save-to', 'state', '--save-at', 'o, g', '--save-gic', 'attributes'))
    sections = parse(read())
    tags = {tag for tag, _, _ in sections}
    t.report('the sections are those that are documented',
             tags == {'machine', 'vcpu', 'uart', 'testdev', 'gic-attr', 'ram'}, tags)
    t.report('zeros are not in the file', len(read()) < 200000, len(read()))
    t.report('nobody else can read the guest\'s memory', os.stat('state').st_mode & 0o77 == 0)
    # Again and again, in the middle of a loop that counts in a general and in a vector register.
    r = t.run(*boot('count', '--save-to', 'state', '--save-after', 1000))
    saves = 0
    while r.returncode == 0 and 'saved' in r.stderr and saves < 50:
        saves += 1
        r = t.run(*load('--save-to', 'state', '--save-after', 7654321))
    t.report('general and vector registers are saved', saves == 9 and r.stdout == 'A\n', saves, r)
    for form in 'image', 'attributes':
        t.run(*boot('line', '--save-to', 'state', '--save-at', 'x', '--save-gic', form))
        t.expect(f'{form}: a line is up until its device lowers it', t.run(*load()), 0, '', '10\n')
    t.run(*boot('clock', '--save-to', 'state', '--save-at', 'x'))
    time.sleep(1)
    t.expect('the guest\'s time stands still meanwhile', t.run(*load()), 0, '', '0\n')
    with subprocess.Popen([t.vmm, *boot('spin', '--save-to', 'signal')], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as p:
        deadline = time.monotonic() + 30
        # The machine runs when it has something to be signalled: ask until it has saved.
        while p.poll() is None and time.monotonic() < deadline:
            time.sleep(0.5)
            p.send_signal(signal.SIGUSR1)
        p.wait(10)
        t.report('SIGUSR1 saves', p.returncode == 0 and parse(read('signal')))


def typed(t):
    """32 characters: the UART takes 16, the others wait in the console."""
    text = ''.join(chr(ord('A') + i) for i in range(32)) + '\n'
    write(text.encode(), 'keys')
    t.run(*boot('echo', '--virtual-time', '--input', 'keys', '--save-to', 'state', '--save-at', 'x'))
    sections = parse(read())
    waiting = [payload for tag, _, payload in sections if tag == 'console']
    t.report('what was typed and not taken is in the file', waiting and len(waiting[0]) > 4 and
             waiting[0] == struct.pack('<I', len(waiting[0]) - 4) + text.encode()[-(len(waiting[0]) - 4):], waiting)
    t.expect('what was typed is read by the guest that goes on', t.run(*load('--virtual-time')), 0, '', text)
    without = [s for s in sections if s[0] != 'console']
    write(build(without))
    taken = text[:len(text) - len(waiting[0]) + 4] if waiting else text
    write('\n'.encode(), 'more')
    t.expect('a file of a program that did not save it', t.run(*load('--virtual-time', '--input', 'more')), 0, '',
             taken + '\n')
    write(build(without + [['console', 0, struct.pack('<I', 1 << 30)]]))
    t.expect('more typed characters than there can be', t.run(*load()), 1, 'more typed characters')
    write(build(without + [['console', 0, struct.pack('<I', 4) + b'abc']]))
    t.expect('fewer typed characters than it says', t.run(*load()), 1, 'it is shorter than')


def reset_again(t):
    """The guest resets after it was loaded: as after a boot, if there is something to boot."""
    t.run(*boot('reset', '--save-to', 'state', '--save-at', 'x'))
    t.expect('a loaded guest that resets needs a kernel', t.run(*load()), 4, 'give --kernel beside --load', '')
    kernel = ['--kernel', 'hello', '--load-address', '0x40080000']
    t.expect('with one it begins anew', t.run(*load(*kernel)), 0, '', 'hello, guest\n')
    t.expect('--no-reboot is heeded', t.run(*load(*kernel, '--no-reboot')), 4, '--no-reboot', '')


def served_elsewhere(t):
    """A part of the state of a vhost-user disk is in another process."""
    if not shutil.which('qemu-storage-daemon'):
        t.count += 1
        print(f'ok {t.count} - a disk of another process # SKIP qemu-storage-daemon (qemu-system-common) is missing')
        return
    with subprocess.Popen(['qemu-storage-daemon', '--blockdev', 'driver=file,node-name=d,filename=disk', '--export',
                           'type=vhost-user-blk,id=e,node-name=d,num-queues=1,addr.type=unix,addr.path=socket'],
                          stdin=subprocess.DEVNULL) as back_end:
        try:
            deadline = time.monotonic() + 30
            while not os.path.exists('socket') and back_end.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            r = t.run(*boot('hello', '--vhost-user-blk', 'socket', '--save-to', 'elsewhere', '--save-at', 'o, g'))
        finally:
            back_end.kill()
    t.expect('a disk of another process: the save is refused, and the guest goes on', r, 0,
             'cannot be saved: disk 0 is served by another process', 'hello, guest\n')
    t.report('and no file is left', not os.path.exists('elsewhere') and not os.path.exists('elsewhere.new'))


def refused(t):
    t.expect('--save-at without --save-to is a usage error', t.run(*boot('hello', '--save-at', 'x')), 2, '--save-to')
    t.expect('--initrd beside --load needs --kernel', t.run(*load('--initrd', 'x')), 2, '--kernel')
    t.expect('--save-gic knows two forms', t.run(*boot('hello', '--save-gic', 'x')), 2, '"attributes"')
    t.expect('a file that is not there', t.run('--load', 'nothing'), 1, 'cannot open nothing')
    t.expect('a directory', t.run('--load', '.'), 1, 'no saved machine')
    r = t.run(*boot('hello', '--save-to', 'nothing/x', '--save-at', 'o, g'))
    t.expect('a save that fails is reported, and the guest goes on', r, 0, 'cannot be saved', 'hello, guest\n')
    t.run(*boot('count', '--save-to', 'state', '--save-after', 1000, '--cpus', 2, '--disk', 'disk'))
    good = read()
    sections = parse(good)
    machine = ['--cpus', '2', '--disk', 'disk']
    t.expect('the file is right', t.run(*load(*machine)), 0, '', 'A\n')
    t.expect('another number of vCPUs', t.run(*load('--cpus', 3, '--disk', 'disk')), 1, 'it has 2 vCPUs')
    t.expect('other ids of vCPUs', t.run(*load(*machine, '--vcpu-ids', '1,0')), 1, 'other ids')
    t.expect('another size of memory', t.run('--load', 'state', '--memory', '17', *machine), 1, 'KiB of memory')
    t.expect('fewer disks', t.run(*load('--cpus', 2)), 1, 'it has 1 disks')
    t.expect('another kind of disk', t.run(*load('--cpus', 2, '--disk', 'disk,readonly')), 1, 'other features')
    t.expect('another number of queues', t.run(*load('--cpus', 2, '--disk', 'disk,queues=3')), 1, 'other queues')
    for cut in 0, 7, 16, 40, len(good) // 2, len(good) - 1:
        write(good[:cut])
        t.expect(f'cut to {cut} bytes', t.run(*load(*machine)), 1, 'cannot be loaded: it is')
    for at in 3, 9, 14, 20, 30, 60, len(good) // 2, len(good) - 20:
        write(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        t.expect(f'byte {at} damaged', t.run(*load(*machine)), 1, 'cannot be loaded: it is')
    write(good + b'x')
    t.expect('something behind the end', t.run(*load(*machine)), 1, 'behind its end')
    write(build(sections, version=1))
    t.expect('another version', t.run(*load(*machine)), 1, 'version 1')
    write(build(sections, end=3))
    t.expect('another number of sections', t.run(*load(*machine)), 1, 'should have 3 sections')
    for i, (tag, number, payload) in enumerate(sections):
        if tag == 'ram':
            continue
        write(build(sections[:i] + sections[i + 1:]))
        t.expect(f'without {tag} {number}', t.run(*load(*machine)), 1, f'no section "{tag}" {number}')
        if tag == 'gic':
            continue
        for what, data in ('longer', payload + b'x'), ('shorter', payload[:-1]):
            write(build(sections[:i] + [[tag, number, data]] + sections[i + 1:]))
            t.expect(f'{what} {tag} {number}', t.run(*load(*machine)), 1, f'it is {what} than')
    write(build(sections + [['vcpu', 2, b'']]))
    t.expect('one section more', t.run(*load(*machine)), 1, 'section "vcpu" 2, which nothing')
    write(build(sections + [['ram', 99, struct.pack('<Q', 16 << 20) + b'x']]))
    t.expect('memory that the machine lacks', t.run(*load(*machine)), 1, 'outside of the machine')


def forged(t, rounds, seed):
    """Any value anywhere, with right checksums: refused, or it runs."""
    rng = random.Random(seed)
    bad = []
    refusals = 0
    for i in range(rounds):
        form = 'attributes' if i % 2 else 'image'
        if i < 2:
            t.run(*boot('count', '--save-to', form, '--save-after', 1000, '--cpus', 2, '--disk', 'disk',
                        '--save-gic', form))
        sections = [[tag, number, bytearray(data)] for tag, number, data in parse(read(form))]
        victim = rng.choice([s for s in sections if s[0] != 'ram'])[2]
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(victim))
            value = rng.choice((b'\0', b'\xff', b'\1', bytes([rng.randrange(256)]))) * rng.choice((1, 2, 4, 8))
            victim[at:at + len(value)] = value[:len(victim) - at]
        write(build([[tag, number, bytes(data)] for tag, number, data in sections]))
        try:
            r = t.run(*load('--cpus', 2, '--disk', 'disk', '--timeout', '0.5', '--no-reboot'))
            refusals += 'cannot be loaded' in r.stderr
            if r.returncode not in (0, 1, 3, 4) or 'Sanitizer' in r.stderr:
                bad.append((i, r))
        except subprocess.TimeoutExpired as e:
            bad.append((i, e))
    t.report(f'{rounds} forged files are refused, or run', not bad, *bad[:3])
    t.report('some of them are refused', refusals > rounds // 10, refusals)


def moved(t, directory, growth, seed):
    """Bare-metal programs, in virtual time: the same bytes, however often they are moved."""
    rng = random.Random(seed)
    for name in 'its', 'spi', 'priority', 'state', 'routing', 'power':
        program_file = os.path.join(directory, name + '.bin')
        if not os.path.exists(program_file):
            t.count += 1
            print(f'ok {t.count} - {name} # SKIP it is not built: there is no cross compiler')
            continue
        machine = ['--cpus', 2, '--memory', 64, '--virtual-time', '--timeout', 50]
        first = ['--kernel', program_file]
        whole = t.run(*first, *machine)
        source, printed, saves, step = first, '', 0, 400
        while True:
            r = t.run(*source, *machine, '--save-to', 'state', '--save-after', int(step * rng.uniform(.5, 1.5)),
                      '--save-gic', rng.choice(('image', 'attributes')))
            printed += r.stdout
            if r.returncode != 0 or 'the machine is saved' not in r.stderr:
                break
            source = ['--load', 'state']
            saves += 1
            step *= growth
        t.report(f'{name}: moved {saves} times, the same', saves > 5 and r.returncode == 0 and
                 printed == whole.stdout and 'not ok' not in printed, saves, r, printed[-1000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('vmm', metavar='VGIC_VMM')
    parser.add_argument('--rounds', type=int, default=20, help='forged files (default: %(default)s)')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--guests', metavar='DIR', help='where the programs of tests/guest are')
    parser.add_argument('--growth', type=float, default=1.7, help='of the time to the next save (default: %(default)s)')
    args = parser.parse_args()
    t = Test(os.path.realpath(args.vmm))
    guests = args.guests and os.path.realpath(args.guests)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        program('hello', HELLO)
        program('count', FPEN + COUNT)
        program('spin', SPIN)
        program('line', LINE)
        program('clock', CLOCK)
        with open('disk', 'wb') as f:
            f.truncate(65536)
        program('echo', ECHO)
        program('reset', RESET)
        continued(t)
        reset_again(t)
        served_elsewhere(t)
        refused(t)
        forged(t, args.rounds, args.seed)
        if guests:
            moved(t, guests, args.growth, args.seed)
        os.chdir('/')
    print(f'1..{t.count}')
    return t.failed > 0


if __name__ == '__main__':
    sys.exit(main())
