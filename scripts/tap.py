# SPDX-License-Identifier: MIT
"""Runs the functions of a test script, and reports in TAP."""

import sys


def run_tests(tests, *args):
    """Calls each test with @args; one that raises anything has failed. Ends the program."""
    print(f'1..{len(tests)}')
    failed = False
    for number, test in enumerate(tests, 1):
        try:
            test(*args)
        except Exception as error:  # whatever it is, it is this test's failure
            failed = True
            print(f'not ok {number} - {test.__name__}')
            print('\n'.join('# ' + line for line in f'{type(error).__name__}: {error}'.splitlines()))
        else:
            print(f'ok {number} - {test.__name__}')
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
