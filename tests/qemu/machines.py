# SPDX-License-Identifier: MIT
"""The two machines: QEMU's `virt` with stopped processors, and libvgic behind the same protocol.

Both take lines of QEMU's qtest protocol and give one line for each. Nothing else is
asked of them, so that a test can put anything in their place.
"""

import ctypes
import json
import signal
import socket
import subprocess

QEMU = ['qemu-system-aarch64', '-machine', 'virt,gic-version=3,its=on', '-cpu', 'cortex-a57', '-smp', '4', '-m', '8',
        '-accel', 'tcg', '-S', '-display', 'none', '-nodefaults', '-qtest', 'stdio', '-qtest-log', 'none']

# So many requests are sent before their answers are read: together they fit into a pipe.
BATCH = 256


PR_SET_PDEATHSIG = 1


def die_with_parent():
    """QEMU goes on when nobody listens any more, even if who has started it was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class MachineEnded(Exception):
    """A machine does not answer any more; the text says which, and what it said last."""


class Machine:
    """A program that answers one line for each that it is given."""

    name = None

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent,
                                        **options)

    def send(self, lines):
        try:
            self.process.stdin.write(('\n'.join(lines) + '\n').encode())
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise MachineEnded(f'{self.name} has ended') from error

    def receive(self, count):
        answers = []
        for _ in range(count):
            line = self.process.stdout.readline().decode().rstrip()
            if not line.startswith(('OK', 'FAIL')):
                raise MachineEnded(f'{self.name} has ended: {line or "without a word"}')
            answers.append(line)
        return answers

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Vgic(Machine):
    """libvgic: the program vgic-qtest."""

    name = 'libvgic'

    def __init__(self, program):
        super().__init__([str(program)])

    def reset(self):
        self.send(['reset'])
        self.receive(1)


class Qemu(Machine):
    """QEMU. It is reset by its other protocol, QMP, on a socket of its own."""

    name = 'QEMU'

    def __init__(self):
        ours, theirs = socket.socketpair()
        with theirs:
            super().__init__([*QEMU, '-chardev', f'socket,id=qmp,fd={theirs.fileno()}', '-mon', 'chardev=qmp,mode=control'],
                             pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL)
        self.qmp = ours.makefile('rw')
        ours.close()
        greeting = self.qmp.readline()
        if 'QMP' not in greeting:
            raise MachineEnded('QEMU does not start: try ' + ' '.join(QEMU))
        version = json.loads(greeting)['QMP']['version']
        self.version = '.'.join(str(version['qemu'][part]) for part in ('major', 'minor', 'micro')) + \
            f" ({version['package']})"
        self.command('qmp_capabilities', lambda message: 'return' in message)

    def command(self, name, is_done):
        self.qmp.write(json.dumps({'execute': name}) + '\n')
        self.qmp.flush()
        while True:
            line = self.qmp.readline()
            if not line:
                raise MachineEnded('QEMU has ended')
            if is_done(json.loads(line)):
                return

    def reset(self):
        self.command('system_reset', lambda message: message.get('event') == 'RESET')

    def close(self):
        self.qmp.close()
        super().close()


class Pair:
    """Both of them. They work at the same time."""

    def __init__(self, make_qemu, make_vgic):
        self.makers = (make_qemu, make_vgic)
        self.machines = []
        self.start()

    def start(self):
        self.close()
        self.machines = [make() for make in self.makers]

    def close(self):
        for machine in self.machines:
            machine.close()
        self.machines = []

    def run(self, lines):
        """Resets both, executes the lines, and returns the answers of both."""
        answers = ([], [])
        for machine in self.machines:
            machine.reset()
        for at in range(0, len(lines), BATCH):
            batch = lines[at:at + BATCH]
            for machine in self.machines:
                machine.send(batch)
            for machine, answer in zip(self.machines, answers):
                answer += machine.receive(len(batch))
        return answers
