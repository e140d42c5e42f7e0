# SPDX-License-Identifier: MIT
"""The language of the scripts: that of tests/oracle, as far as a machine with stopped processors can do it.

    v0 r32 GICD_TYPER             v0 w8 GICD_IPRIORITYR+40 0x80      widths 8, 16, 32, 64
    its0 mapd DEV ITT BITS        its0 mapti DEV EV LPI ICID         ... see COMMANDS
    its0 skip 120                 on by so many commands, whatever is in the queue there
    spi 40 1                      ppi v0 20 1                        lines
    msi its0 dev=0 ev=3           a write of GITS_TRANSLATER
    ram r64 ADDRESS               ram w64 ADDRESS VALUE              guest memory
    fill ADDRESS LENGTH BYTE      dump ADDRESS LENGTH

Operations of one line that belong together have a ; between them, and `#` begins a
comment. Numbers are sums of literals and names: GICR_CTLR@1, GITS_BASER+4, ITT@3. A line
becomes requests of qtest; one that reads gives a value.
"""

import re
from dataclasses import dataclass

GICD, GITS, GICR = 0x08000000, 0x08080000, 0x080a0000
GICR_SIZE = 0x20000
NUM_VCPUS = 4
NUM_SPIS = 256
FIRST_LPI = 8192
LPI_BITS = 14
GIC_PATH = '/machine/unattached/device[4] unnamed-gpio-in'

# Tables of the scripts: a name, where the first one is, and how far the next one. The rest of memory is never touched.
TABLES_BEGIN, TABLES_SIZE = 0x40200000, 0x180000
TABLES = {'RAM': (0x40000000, 0), 'PROP': (0x40200000, 0), 'PEND': (0x40210000, 0x10000), 'QUEUE': (0x40250000, 0),
          'DEVTAB': (0x40260000, 0), 'COLTAB': (0x40280000, 0), 'L2': (0x40290000, 0x10000), 'ITT': (0x402d0000, 0x2000),
          'BIGITT': (0x40300000, 0), 'PEND2': (0x40340000, 0x10000)}
QUEUE_SIZE = 0x1000


@dataclass(frozen=True)
class Register:
    """@count registers of @size bytes; @widths are those at which the architecture has it answer."""
    name: str
    frame: str
    offset: int
    count: int
    size: int
    widths: tuple


# PIDR4 and on, PIDR0, PIDR1 to PIDR3, CIDR0 to CIDR3.
IDENTIFICATION = [('IDS', 0xffd0, 4, 4, (4,)), ('PIDR0', 0xffe0, 1, 4, (4,)), ('PIDR1', 0xffe4, 3, 4, (4,)),
                  ('CIDR0', 0xfff0, 4, 4, (4,))]


def _registers():
    word, either, byte = (4,), (4, 8), (1, 4)
    for name, offset, count, size, widths in [
            ('CTLR', 0, 1, 4, word), ('TYPER', 4, 1, 4, word), ('IIDR', 8, 1, 4, word), ('TYPER2', 0xc, 1, 4, word),
            ('STATUSR', 0x10, 1, 4, word), ('SETSPI_NSR', 0x40, 1, 4, word), ('CLRSPI_NSR', 0x48, 1, 4, word),
            ('SETSPI_SR', 0x50, 1, 4, word), ('CLRSPI_SR', 0x58, 1, 4, word),
            ('IGROUPR', 0x80, 32, 4, word), ('ISENABLER', 0x100, 32, 4, word), ('ICENABLER', 0x180, 32, 4, word),
            ('ISPENDR', 0x200, 32, 4, word), ('ICPENDR', 0x280, 32, 4, word), ('ISACTIVER', 0x300, 32, 4, word),
            ('ICACTIVER', 0x380, 32, 4, word), ('IPRIORITYR', 0x400, 255, 4, byte), ('ITARGETSR', 0x800, 255, 4, byte),
            ('ICFGR', 0xc00, 64, 4, word), ('IGRPMODR', 0xd00, 32, 4, word), ('NSACR', 0xe00, 64, 4, word),
            ('SGIR', 0xf00, 1, 4, word), ('CPENDSGIR', 0xf10, 4, 4, byte), ('SPENDSGIR', 0xf20, 4, 4, byte),
            ('IROUTER', 0x6000, 1020, 8, either), *IDENTIFICATION]:
        yield Register('GICD_' + name, 'GICD', offset, count, size, widths)
    for name, offset, count, size, widths in [
            ('CTLR', 0, 1, 4, word), ('IIDR', 4, 1, 4, word), ('TYPER', 8, 1, 8, either), ('STATUSR', 0x10, 1, 4, word),
            ('WAKER', 0x14, 1, 4, word), ('SETLPIR', 0x40, 1, 8, either), ('CLRLPIR', 0x48, 1, 8, either),
            ('PROPBASER', 0x70, 1, 8, either), ('PENDBASER', 0x78, 1, 8, either), ('INVLPIR', 0xa0, 1, 8, either),
            ('INVALLR', 0xb0, 1, 8, either), ('SYNCR', 0xc0, 1, 4, word), *IDENTIFICATION,
            ('IGROUPR0', 0x10080, 1, 4, word), ('ISENABLER0', 0x10100, 1, 4, word), ('ICENABLER0', 0x10180, 1, 4, word),
            ('ISPENDR0', 0x10200, 1, 4, word), ('ICPENDR0', 0x10280, 1, 4, word), ('ISACTIVER0', 0x10300, 1, 4, word),
            ('ICACTIVER0', 0x10380, 1, 4, word), ('IPRIORITYR', 0x10400, 8, 4, byte), ('ICFGR', 0x10c00, 2, 4, word),
            ('IGRPMODR0', 0x10d00, 1, 4, word), ('NSACR', 0x10e00, 1, 4, word)]:
        yield Register('GICR_' + name, 'GICR', offset, count, size, widths)
    for name, offset, count, size, widths in [
            ('CTLR', 0, 1, 4, word), ('IIDR', 4, 1, 4, word), ('TYPER', 8, 1, 8, either), ('CBASER', 0x80, 1, 8, either),
            ('CWRITER', 0x88, 1, 8, either), ('CREADR', 0x90, 1, 8, either), ('BASER', 0x100, 8, 8, either),
            *IDENTIFICATION, ('TRANSLATER', 0x10040, 1, 4, word)]:
        yield Register('GITS_' + name, 'GITS', offset, count, size, widths)


REGISTERS = list(_registers())
BY_NAME = {register.name: register for register in REGISTERS}
BASES = {'GICD': GICD, 'GICR': GICR, 'GITS': GITS}


def find_register(address):
    """(register or None, offset within the array, index of the redistributor) of an address."""
    if address >= GICR:
        frame, offset, which = 'GICR', (address - GICR) % GICR_SIZE, (address - GICR) // GICR_SIZE
    elif address >= GITS:
        frame, offset, which = 'GITS', address - GITS, 0
    else:
        frame, offset, which = 'GICD', address - GICD, 0
    for register in REGISTERS:
        if register.frame == frame and register.offset <= offset < register.offset + register.count * register.size:
            return register, offset - register.offset, which
    return None, offset, which


def name_of(address):
    """An address as a script has it."""
    register, offset, which = find_register(address)
    if not register:
        register, offset = {'GICD': 'GICD', 'GICR': 'GICR', 'GITS': 'GITS'}[
            'GICR' if address >= GICR else 'GITS' if address >= GITS else 'GICD'], offset
    name = register if isinstance(register, str) else register.name
    return name + (f'@{which}' if which else '') + (f'+{offset:#x}' if offset else '')


class ScriptError(Exception):
    """A line that means nothing."""


def _term(text):
    match = re.fullmatch(r'([A-Z][A-Z0-9_]*?)(?:@(\d+))?', text)
    try:
        if not match:
            return int(text, 0)
    except ValueError as error:
        raise ScriptError(f'neither a number nor a name: {text}') from error
    name, which = match.group(1), int(match.group(2) or 0)
    if name in TABLES:
        return TABLES[name][0] + which * TABLES[name][1]
    if name in BASES:
        return BASES[name] + which * GICR_SIZE
    if name in BY_NAME:
        register = BY_NAME[name]
        return BASES[register.frame] + register.offset + which * GICR_SIZE
    raise ScriptError(f'neither a number nor a name: {text}')


def number(text):
    return sum(_term(term) for term in text.split('+'))


# ---- ITS commands: the words of the operation, to four doublewords ----

VALID = 1 << 63


def _event(opcode, device, event, pintid=0, icid=0):
    return [opcode | device << 32, event | pintid << 32, icid, 0]


COMMANDS = {
    'mapd': lambda dev, itt, bits: [0x08 | dev << 32, bits - 1, VALID | itt, 0],
    'unmapd': lambda dev: [0x08 | dev << 32, 0, 0, 0],
    'mapc': lambda icid, rd: [0x09, 0, VALID | rd << 16 | icid, 0],
    'unmapc': lambda icid: [0x09, 0, icid, 0],
    'mapti': lambda dev, ev, lpi, icid: _event(0x0a, dev, ev, lpi, icid),
    'mapi': lambda dev, ev, icid: _event(0x0b, dev, ev, 0, icid),
    'movi': lambda dev, ev, icid: _event(0x01, dev, ev, 0, icid),
    'int': lambda dev, ev: _event(0x03, dev, ev),
    'clear': lambda dev, ev: _event(0x04, dev, ev),
    'inv': lambda dev, ev: _event(0x0c, dev, ev),
    'discard': lambda dev, ev: _event(0x0f, dev, ev),
    'invall': lambda icid: [0x0d, 0, icid, 0],
    'movall': lambda rd1, rd2: [0x0e, 0, rd1 << 16, rd2 << 16],
    'sync': lambda rd: [0x05, 0, rd << 16, 0],
    'raw': lambda *doublewords: list(doublewords),
}

LETTERS = {1: 'b', 2: 'w', 4: 'l', 8: 'q'}


@dataclass
class Request:
    """A line of qtest. @reads: its answer is a value, which is compared; of a register, then @address says which."""
    line: str
    operation: int      # the index of the operation that it belongs to
    reads: bool = False
    address: int = 0
    width: int = 0


class Lowering:
    """From operations to requests. It knows where the command queue has got to."""

    def __init__(self):
        self.requests = []
        self.tail = 0
        self.index = 0

    def emit(self, line, **what):
        self.requests.append(Request(line, self.index, **what))

    def read(self, address, width):
        self.emit(f'read{LETTERS[width]} {address:#x}', reads=True, address=address, width=width)

    def write(self, address, width, value):
        self.emit(f'write{LETTERS[width]} {address:#x} {value & (1 << 8 * width) - 1:#x}')

    def command(self, doublewords):
        """Into the queue, and on with GITS_CWRITER."""
        if len(doublewords) != 4:
            raise ScriptError('a command has four doublewords')
        data = b''.join((word & (1 << 64) - 1).to_bytes(8, 'little') for word in doublewords)
        self.emit(f"write {TABLES['QUEUE'][0] + self.tail:#x} 0x20 0x{data.hex()}")
        self.move_tail(1)

    def move_tail(self, count):
        self.tail = (self.tail + 32 * count) % QUEUE_SIZE
        self.write(GITS + 0x88, 8, self.tail)

    def access(self, words):
        match = re.fullmatch(r'([rw])(8|16|32|64)', words[0])
        if not match or len(words) != (2 if match.group(1) == 'r' else 3):
            raise ScriptError(f'no access: {" ".join(words)}')
        address, width = number(words[1]), int(match.group(2)) // 8
        if match.group(1) == 'r':
            self.read(address, width)
        else:
            self.write(address, width, number(words[2]))

    def line(self, kind, numbers):
        intid, level = numbers[-2], numbers[-1]
        given = intid - 32 if kind == 'spi' else NUM_SPIS + 32 * numbers[0] + intid
        if not (32 <= intid < 32 + NUM_SPIS if kind == 'spi' else 16 <= intid < 32 and numbers[0] < NUM_VCPUS):
            raise ScriptError(f'no line of this machine: {kind} {intid}')
        self.emit(f'set_irq_in {GIC_PATH} {given} {int(level != 0)}')

    def operation(self, text):
        words = text.split()
        if not words:
            return
        try:
            self.dispatch(words)
        except (TypeError, IndexError) as error:
            raise ScriptError(f'too much or too little: {text}') from error

    def dispatch(self, words):
        kind = words[0]
        if re.fullmatch(r'v\d', kind):
            self.access(words[1:])
        elif kind == 'its0' and words[1] == 'skip':
            self.move_tail(number(words[2]))
        elif kind == 'its0' and words[1] in COMMANDS:
            self.command(COMMANDS[words[1]](*(number(word) for word in words[2:])))
        elif kind == 'spi':
            self.line(kind, [number(word) for word in words[1:]])
        elif kind == 'ppi':
            self.line(kind, [int(words[1][1:]), *(number(word) for word in words[2:])])
        elif kind == 'msi' and words[1] == 'its0' and words[2] == 'dev=0':
            self.write(GITS + 0x10040, 4, number(words[3].removeprefix('ev=')))
        elif kind == 'ram':
            self.access(words[1:])
        elif kind == 'fill':
            self.emit(f'memset {number(words[1]):#x} {number(words[2]):#x} {number(words[3]):#x}')
        elif kind == 'dump':
            self.emit(f'read {number(words[1]):#x} {number(words[2]):#x}', reads=True)
        else:
            raise ScriptError(f'no operation here: {" ".join(words)}')

    def all(self, operations):
        for self.index, text in enumerate(operations):
            for part in text.split('#')[0].split(';'):
                self.operation(part)
        return self.requests


def lower(operations):
    return Lowering().all(operations)


# ---- What is looked at behind every script ----

def look_at_everything():
    """Operations that read every register that holds state."""
    operations = ['v0 r32 GICD_CTLR', 'v0 r32 GICD_TYPER']
    for bank in ('IGROUPR', 'ISENABLER', 'ICENABLER', 'ISPENDR', 'ICPENDR', 'ISACTIVER', 'ICACTIVER'):
        operations += [f'v0 r32 GICD_{bank}+{4 * i:#x}' for i in range(1 + (32 + NUM_SPIS) // 32)]
    operations += [f'v0 r32 GICD_IPRIORITYR+{4 * i:#x}' for i in range(8, 8 + NUM_SPIS // 4)]
    operations += [f'v0 r32 GICD_ICFGR+{4 * i:#x}' for i in range(2, 2 + NUM_SPIS // 16)]
    operations += [f'v0 r64 GICD_IROUTER+{8 * i:#x}' for i in range(32, 32 + NUM_SPIS)]
    for vcpu in range(NUM_VCPUS):
        at = f'@{vcpu}'
        operations += [f'v0 r32 GICR_{name}{at}' for name in (
            'CTLR', 'WAKER', 'SYNCR', 'IGROUPR0', 'ISENABLER0', 'ICENABLER0', 'ISPENDR0', 'ICPENDR0', 'ISACTIVER0',
            'ICACTIVER0', 'ICFGR', 'IGRPMODR0', 'NSACR')]
        operations += [f'v0 r32 GICR_ICFGR{at}+4']
        operations += [f'v0 r32 GICR_IPRIORITYR{at}+{4 * i:#x}' for i in range(8)]
        operations += [f'v0 r64 GICR_{name}{at}' for name in ('TYPER', 'PROPBASER', 'PENDBASER')]
    operations += ['v0 r32 GITS_CTLR']
    operations += [f'v0 r64 GITS_{name}' for name in ('TYPER', 'CBASER', 'CWRITER', 'CREADR')]
    operations += [f'v0 r64 GITS_BASER+{8 * i:#x}' for i in range(8)]
    return operations
