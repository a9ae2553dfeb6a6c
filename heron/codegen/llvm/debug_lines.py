"""Machine code beside the LLVM text it comes from: line numbers that LLVM carries along, as it does for a debugger.

`numbered` gives every instruction of a text its own line as place in the source; `stripped` reads these numbers in the
assembly and leaves out what only a debugger and an assembler need.
"""

from __future__ import annotations

import re

_FLAGS = """!llvm.dbg.cu = !{{!{unit}}}
!llvm.module.flags = !{{!{version}}}
!{unit} = distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, emissionKind: DebugDirectivesOnly)
!{file} = !DIFile(filename: "kernel.ll", directory: ".")
!{version} = !{{i32 2, !"Debug Info Version", i32 3}}
!{type} = !DISubroutineType(types: !{{}})
"""
#: above the numbers of a text's own metadata
_FIRST = 1_000_000
_UNIT, _FILE, _VERSION, _TYPE = range(_FIRST, _FIRST + 4)

_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
#: directives of assemblers that say nothing of the code
_NOISE = re.compile(
    r"\s*\.(file|loc|cfi_\w+|section|p2align|size|type|globl|ident|addrsig|text|hidden|build_version|weak|set)\b"
    r"|\s*//\s*(%bb|-- |\.globl|Generated|demoted)|//$|\.?Lfunc_|\$L__(tmp|func)|\.?Ltmp|\s*#\s*%bb"
)
_DEBUG_SECTION = re.compile(r"\s*\.section\s+\.?\"?\.?debug|\s*\.section\s+\.debug")


def numbered(llvm: str) -> str:
    """The text with a place in the source for each instruction: its line, from 1 on."""
    out: list[str] = []
    extra = [_FLAGS.format(unit=_UNIT, file=_FILE, version=_VERSION, type=_TYPE)]
    number, scope = _FIRST + 8, -1
    in_list = False
    for line, text in enumerate(llvm.split("\n"), 1):
        if text.startswith("define ") and text.endswith("{"):
            number += 1
            scope = number
            extra.append(
                f'!{scope} = distinct !DISubprogram(name: "f{line}", file: !{_FILE}, line: {line}, type: !{_TYPE}, '
                f"unit: !{_UNIT}, spFlags: DISPFlagDefinition)"
            )
            text = f"{text[:-1]}!dbg !{scope} {{"
        elif scope >= 0 and text == "}":
            scope = -1
        elif scope >= 0 and text.startswith("  "):
            ends_list = in_list and "]" in text
            in_list = (in_list or text.rstrip().endswith("[")) and not ends_list
            if not in_list and (ends_list or not text.startswith("    ")):
                number += 1
                extra.append(f"!{number} = !DILocation(line: {line}, column: 1, scope: !{scope})")
                text += f", !dbg !{number}"
        out.append(text)
    return "\n".join([*out, *extra])


def stripped(code: str) -> tuple[list[str], list[int]]:
    """Lines of assembly or PTX, and for each the line of the LLVM text that it comes from; 0 where there is none."""
    kept: list[str] = []
    lines: list[int] = []
    line, in_debug = 0, False
    for text in code.split("\n"):
        if _DEBUG_SECTION.match(text):
            in_debug = True
        elif text.lstrip().startswith((".text", ".section")):
            in_debug = False
        found = _LOC.match(text)
        if found is not None:
            line = int(found.group(1))
        if in_debug or not text.strip() or _NOISE.match(text):
            continue
        kept.append(text.replace("\t", "    "))
        is_code = text[0] in " \t" and not text.lstrip().startswith((".", "//", "#"))
        lines.append(line if is_code else 0)
    return kept, lines
