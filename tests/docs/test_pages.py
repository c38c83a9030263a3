"""The reader of pages: what is code, what is output, and when two outputs are the same."""

import pytest

from .pages import blocks, difference

PAGE = """
# A page

```python
print(1)
```

```text
1
```

<!-- not run: it takes an hour -->
```bash
damvi fit data.csv
```

```
no code of ours
```
"""


def test_blocks_have_their_output_and_their_reason():
    first, second = blocks(PAGE)
    assert (first.language, first.code, first.line) == ("python", "print(1)\n", 4)
    assert (first.output, first.not_run) == ("1\n", None)
    assert (second.language, second.output) == ("bash", None)
    assert second.not_run == "it takes an hour"


def test_output_of_nothing_is_an_error():
    with pytest.raises(AssertionError, match="line 1: the output of nothing"):
        blocks("```text\n1\n```\n")


@pytest.mark.parametrize(
    ("told", "printed", "same"),
    [
        ("F1 0.70", "F1   0.71", True),
        ("F1 0.70", "F1 0.76", False),
        ("F1 0.70", "F2 0.70", False),
        ("F1 0.70 .66–.75", "F1 0.70 .65–.75", True),
        ("F1 0.70 .66–.75", "F1 0.70 .55–.75", False),
        ("1,200 rows", "1,250 rows", True),
        ("1,200 rows", "1,300 rows", False),
        ("a\nb", "a\nb\nc", False),
        ("a\nb\nc", "a\nb", False),
        ("a\n...", "a\nb\nc", True),
        ("a\n...\nc", "a\nb\nb\nc", True),
        ("a\n...\nc", "a\nb\nb\nd", False),
        ("a\n...\nc\n...\ne", "a\nb\nc\nd\ne", True),
        ("a\n...\nx\n...\ne", "a\nb\nc\nd\ne", False),
        ("...\nb", "a\nb", True),
        ("-0.8 to -0.6", "0.8 to -0.6", False),
        # Rounded figures may differ by one in the last digit.
        ("0.5% missing", "0.6% missing", True),
        ("0.5% missing", "0.7% missing", False),
        ("0.5% missing", "0.6% unread", False),
        ("0.063 0.003 to 0.019", "0.064 0.002 to 0.020", True),
        ("0.063 0.003 to 0.019", "0.064 0.002 to 0.120", False),
        ("0.063 0.003 to 0.019", "0.063 0.003 or 0.019", False),
        ("about 5 of 9 rows (3 to 7)", "about 6 of 9 rows (2 to 8)", True),
        ("about 5 of 9 rows (3 to 7)", "about 7 of 9 rows (3 to 7)", False),
        ("about 5 of 9 rows (3 to 7)", "about 5 of 9 rows (3 to 9)", False),
        ("about 5 of 9 rows (3 to 7)", "about 5 of 8 rows (3 to 7)", False),
        ("5 rows", "6 rows", False),
        ("DAMVI and LightGBM tie", "LightGBM does better: 3", True),
    ],
)
def test_words_are_the_same_and_numbers_close(told, printed, same):
    assert (difference(told, printed) is None) == same
