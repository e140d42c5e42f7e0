# SPDX-License-Identifier: MIT
"""Executes operations on both machines, compares, and finds the shortest script that shows a difference."""

import differences
import script
from machines import MachineEnded

EMPTY_TABLES = [f'memset {script.TABLES_BEGIN:#x} {script.TABLES_SIZE:#x} 0x0']
# Before a script: what is known to differ out of reset (table-attributes).
PREPARATION = EMPTY_TABLES + [request.line for request in script.lower(['v0 w64 GITS_BASER 0', 'v0 w64 GITS_BASER+8 0'])]


class Finding:
    """The first answer that differs: @operation is an index, or past the end of the script if it was a look behind it."""

    def __init__(self, operation, request, qemu, libvgic):
        self.operation = operation
        self.request = request
        self.qemu = qemu
        self.libvgic = libvgic

    def what(self):
        """What was read."""
        if not self.request:
            return 'the end of a machine'
        if not self.request.width:
            return self.request.line
        return f'v0 r{8 * self.request.width} {script.name_of(self.request.address)}'

    def shows(self):
        """By what it is the same as that of a shorter script."""
        return self.what(), self.qemu, self.libvgic

    def values(self):
        """Both answers; of long ones the part from the first byte that differs."""
        qemu, libvgic = self.qemu.removeprefix('OK '), self.libvgic.removeprefix('OK ')
        if len(qemu) <= 20 and len(libvgic) <= 20:
            return hex(int(qemu, 0)), hex(int(libvgic, 0))
        if len(qemu) != len(libvgic):
            return qemu, libvgic
        at = next(i for i in range(2, len(qemu), 2) if qemu[i:i + 2] != libvgic[i:i + 2])
        return tuple(f'byte {at // 2 - 1:#x}: {answer[at:at + 16]}' for answer in (qemu, libvgic))


class Comparer:
    """A pair of machines. It counts what it has compared."""

    def __init__(self, pair, use_differences=True):
        self.pair = pair
        self.use_differences = use_differences
        self.look = script.lower(script.look_at_everything())
        self.counts = {'scripts': 0, 'operations': 0, 'values': 0}

    def same(self, request, qemu, libvgic):
        if qemu == libvgic:
            return True
        if not self.use_differences or not request.width or 'FAIL' in qemu + libvgic:
            return False
        return differences.explain(request.address, request.width, int(qemu.split()[1], 0), int(libvgic.split()[1], 0))

    def compare(self, operations, count=True):
        """The first Finding, or None."""
        requests = script.lower(operations)
        for request in self.look:
            request.operation = len(operations)
        requests += self.look
        differences.steer('table-attributes')
        try:
            qemu, libvgic = self.pair.run(PREPARATION + [request.line for request in requests])
        except MachineEnded as error:
            self.pair.start()
            return Finding(len(operations), None, str(error), str(error))
        if count:
            self.counts['scripts'] += 1
            self.counts['operations'] += len(operations)
            self.counts['values'] += sum(request.reads for request in requests)
        for request, left, right in zip(requests, qemu[len(PREPARATION):], libvgic[len(PREPARATION):]):
            if not self.same(request, left, right):
                return Finding(request.operation, request, left, right)
        return None

    def values(self, operations):
        """(operation, what QEMU says, what libvgic says) of those that read, out of reset."""
        requests = script.lower(operations)
        qemu, libvgic = self.pair.run(EMPTY_TABLES + [request.line for request in requests])
        return [(operations[request.operation], int(left.split()[1], 0), int(right.split()[1], 0))
                for request, left, right in zip(requests, qemu[1:], libvgic[1:]) if request.reads]

    def shorten(self, before, operations, behind, finding):
        """
        Leaves out operations as long as the two differ in the same way: halves, quarters, ..., single ones. What differs in
        another way is likely to be a known difference that the whole script has kept off.
        """
        def differs(candidate):
            other = self.compare(before + candidate + behind, count=False)
            return other is not None and other.shows() == finding.shows()

        chunk = max(1, len(operations) // 2)
        while True:
            at, left_out = 0, False
            while at < len(operations):
                candidate = operations[:at] + operations[at + chunk:]
                if differs(candidate):
                    operations, left_out = candidate, True
                else:
                    at += chunk
            if chunk > 1:
                chunk //= 2
            elif not left_out:
                return operations


def failed_witnesses(comparer):
    """Known differences that are none any more: (name, operation, expected values, values)."""
    failed = []
    for difference in differences.DIFFERENCES:
        steps = list(difference.steps())
        expected = [step for step in steps if step[1] is not None]
        found = comparer.values([step[0] for step in steps])
        failed += [(difference.name, step, values) for step, values in zip(expected, found) if step != values]
        if not any(step[1] != step[2] for step in expected):
            failed.append((difference.name, 'shows no difference', None))
    return failed
