"""The progress bar: on the standard error, and transparent to what it follows."""

from damvi import DAMVIClassifier
from damvi.messages import progress_bar


def test_items_pass_through_unchanged(capsys):
    assert list(progress_bar("Counting")(iter(range(3)), 3)) == [0, 1, 2]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Counting" in captured.err
    assert "3/3" in captured.err


def test_verbose_shows_a_bar_and_changes_nothing_else(capsys, table):
    X, y = table
    loud = DAMVIClassifier(n_estimators=5, random_state=0, verbose=1).fit(X, y)
    shown = capsys.readouterr()
    assert "Training voters" in shown.err
    assert "5/5" in shown.err
    assert shown.out == ""
    quiet = DAMVIClassifier(n_estimators=5, random_state=0).fit(X, y)
    assert capsys.readouterr().err == ""
    assert (loud.weights_ == quiet.weights_).all()
