"""Texts that would run code, break a literal, or end a line or a cell, where they are pasted into a source; drawn by a seed."""

import builtins
import random

TRIPPED = "hermitex_canary"
_CODE = (f"setattr(__import__('builtins'), '{TRIPPED}', 1)", f'setattr(__import__("builtins"), "{TRIPPED}", 1)')
_FRAMES = (
    '"""\n%s\n"""', "'''\n%s\n'''", '\\"""\n%s\n#', '"];%s;s["', "'];%s;s['", '"\n%s\n"', "\r\n%s\r\n#", "\r%s\r", "#\n%s",
    "x\x0c%s", '" + str(%s) + "', '"""+str(%s)+"""', '\\u0022\\u0022\\u0022\n%s\n', "{%s}", "{{%s}}", "\u2028%s\u2028",
    "\x85%s", "%s", "\\\n%s", '"""\n\nimport builtins\n%s\n\n"""')
ODD = (
    "", " ", '"""', '"', "'", "''' \"\"\"", "\\", "\\\\", "\\usepackage", "Eq. (3) of \\usepackage", "\\N{", "\\x", "\\u12",
    "{}", "{0}", "%s %d %", "%(prog)s %", "a\0b", "\0", "\ud800", "x\udfffy", "\u202e\u2066abc", "\ufeff",
    "\x1b[31mred\x1b[0m", "\x07\x08", "a\tb\vc\fd", "a\r\nb", "<<formulas>>", "<<tolerance>> <<code>>", "$", "$x$ and 5$",
    "50% of #1 & _x ^2 ~ {", "}", "=cmd|'/c calc'!A0", "+1", "-x", "@x", "a,b", "<script>alert(1)</script>", "&amp;",
    "é λ 中 \U0001f600", "ＡＢＣ", "-->", "]]>", "*/", "\n\n\n    b", "a\n\tb")
_LETTERS = "ab\"'\\\n\r\0\t#$%&_{}^~<>=;:,()[]@!\u202e\u2028\ud800é中\x1b\x0c"


def texts(seed, count):
    """The frames around both forms of the code, what is merely odd, and strings of both."""
    rng = random.Random(seed)
    fixed = [frame % code for frame in _FRAMES for code in _CODE] + list(ODD)
    drawn = ["".join(rng.choice(_LETTERS) for _ in range(rng.randint(1, 12))) for _ in range(count)]
    mixed = [rng.choice(fixed) + rng.choice(drawn) + rng.choice(fixed) for _ in range(count)] if drawn else []
    return [*fixed, *drawn, *mixed]


def assert_nothing_ran():
    """No text became code."""
    ran = vars(builtins).pop(TRIPPED, None)
    assert ran is None, "a text was run"
