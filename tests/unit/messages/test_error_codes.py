"""Every error of the package has a literal code, which the page of errors and a test know."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import error_codes

ROOT = Path(__file__).parents[3]


def test_every_error_has_a_literal_code() -> None:
    made = error_codes.errors_made(ROOT)
    assert [f"{one.path}:{one.line}" for one in made if not one.code and not one.passed_on] == []


def test_codes_are_upper_case_words() -> None:
    wrong = [
        one.code for one in error_codes.errors_made(ROOT) if not error_codes.CODE.fullmatch(one.code or "X")
    ]
    assert wrong == []


def test_the_page_has_one_row_for_every_code() -> None:
    assert sorted(error_codes.documented(ROOT)) == sorted(error_codes.codes(ROOT))


def test_every_row_says_what_it_means_and_what_to_do() -> None:
    for line in (ROOT / error_codes.PAGE).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if error_codes.CODE.fullmatch(cells[0].strip("`") if cells else ""):
            assert len(cells) == 3, line
            assert all(len(cell) > 5 and cell.endswith(".") for cell in cells[1:]), line


def test_a_test_expects_every_code() -> None:
    here = Path(__file__)
    assert error_codes.codes(ROOT).keys() - error_codes.tested(ROOT, here) == set()


@pytest.mark.parametrize(
    ("source", "page", "test", "found"),
    [
        ('raise FlowError("It is late", code="LATE", do="Wait")', "LATE", "LATE", []),
        ('raise FlowError("It is late")', "", "", ["src/tidegate/m.py:1: an error without a code"]),
        (
            'raise errors.BatchFailed("It is late", code="late")',
            "",
            "",
            ["src/tidegate/m.py:1: late is not UPPER_SNAKE"],
        ),
        (
            'raise FlowError("x", code=f"{kind}_LATE")',
            "",
            "",
            ["src/tidegate/m.py:1: an error without a code"],
        ),
        ("raise FlowError(problem, code=error.code)", "", "", []),
        ('def f(*, code: str = "LATE"):\n    raise FlowError("x", code=code)', "LATE", "LATE", []),
        ('checked("x", code="LATE")', "", "LATE", ["src/tidegate/m.py:1: LATE has no row in docs/errors.md"]),
        ('checked("x", code="LATE")', "LATE", "", ["src/tidegate/m.py:1: LATE occurs in no test"]),
        ("pass", "LATE", "", ["docs/errors.md: LATE is not a code of the source"]),
        ('checked("x", code="LATE")', "LATE LATE", "LATE", ["docs/errors.md: LATE has 2 rows"]),
    ],
)
def test_the_script_finds_what_is_missing(
    tmp_path: Path, source: str, page: str, test: str, found: list[str]
) -> None:
    for name, text in (
        ("src/tidegate/m.py", source),
        ("docs/errors.md", "\n".join(f"| `{code}` | It is late. | Wait. |" for code in page.split())),
        ("tests/test_m.py", f"# {test}"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert error_codes.violations(tmp_path) == found


def test_a_draft_has_the_words_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/errors.md").touch()
    (tmp_path / "src/m.py").write_text(
        'FlowError(f"Row {n} is late", code="ROW_LATE", do="Wait")', encoding="utf-8"
    )
    assert error_codes.drafts(tmp_path) == ["| `ROW_LATE` | Row … is late. | Wait. |"]
