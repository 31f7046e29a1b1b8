#!/usr/bin/env python3
"""docs/audit.md has the checks that the program has. usage: test_page.py FOLIOT [--write]"""
import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs", "audit.md")
BEGIN, END = "<!-- checks: foliot audit checks --markdown -->\n", "<!-- end of checks -->\n"


def main():
    table = subprocess.run([sys.argv[1], "audit", "checks", "--markdown"], capture_output=True, text=True, check=True).stdout
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        print(f"docs/audit.md: expected the lines {BEGIN.strip()} and {END.strip()} around the table, found {text.count(BEGIN)} and {text.count(END)}")
        return 1
    new = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + table + END, text, flags=re.S)
    if "--write" in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as page:
            page.write(new)
    elif new != text:
        print("docs/audit.md lists other checks than the program: test/audit/test_page.py FOLIOT --write")
        return 1
    return 0


sys.exit(main())
