#!/usr/bin/env python3
"""junit.py FILE: prints "PASSED FAILED" of a JUnit file on stdout; on stderr, what failed or was skipped."""

import sys
import xml.etree.ElementTree

passed = failed = 0
for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
    name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
    skipped = case.find("skipped")
    if case.find("failure") is not None or case.find("error") is not None:
        failed += 1
        print(f"  failed: {name}", file=sys.stderr)
    elif skipped is not None or case.get("status") in ("notrun", "disabled"):
        why = skipped.get("message", "") if skipped is not None else ""
        print(f"  skipped: {name} {why}".rstrip(), file=sys.stderr)
    else:
        passed += 1
print(passed, failed)
