"""Where to draw, and with what colours."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette, safe for colour-blind readers; both also differ in grey.
BLUE, ORANGE = "#0072B2", "#D55E00"
PALE, GREY = "#BBBBBB", "#666666"


def open_axes(display: Any, ax: Any, size: tuple[float, float]) -> Any:
    """``ax``, or the axes of a new figure; ``display`` remembers both."""
    if ax is None:
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError(
                f"{type(display).__name__} needs matplotlib; pip install 'damvi[report]'"
            ) from error
        _, ax = plt.subplots(figsize=size, layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return _plain(ax)


def open_below(ax: Any, share: float) -> Any:
    """A panel that takes the lower ``share`` of the place of ``ax``, on the same x."""
    spec = ax.get_subplotspec()
    if spec is not None:
        rows = spec.subgridspec(2, 1, height_ratios=(1 - share, share), hspace=0.1)
        ax.set_subplotspec(rows[0])
        below = ax.figure.add_subplot(rows[1], sharex=ax)
    else:
        x, y, width, height = ax.get_position().bounds
        ax.set_position((x, y + share * height, width, (1 - share) * height))
        below = ax.figure.add_axes((x, y, width, 0.8 * share * height), sharex=ax)
    ax.tick_params(labelbottom=False)
    return _plain(below)


def in_percent(axis: Any) -> None:
    """Label an axis of shares in percent."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")


def _plain(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=3)
    return ax


def headline(ax: Any, text: str, above: float | None = None) -> None:
    """What is seen, over the axes or ``above`` what stands on them."""
    ax.set_title(text, loc="left", fontsize="medium", y=above)


def percent(share: float) -> str:
    """A share as a reader would say it: two digits, no more."""
    if share != share:
        return "no rows"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"
