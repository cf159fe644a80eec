"""theory.explore(): sliders for the numbers and menus for the functions; every move draws the lines anew.

The widgets are those of ipywidgets (extra `notebook`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from hermitex.errors import HermitexError, MissingExtra, first_line
from hermitex.show.escape import line
from hermitex.show.explorer_panels import Panel, pictures

ACTIVATIONS = ("tanh", "erf", "relu", "gelu", "sigmoid", "softplus", "sin", "sign")
TARGETS = ("tanh", "sin", "sign", "relu", "erf", "He1", "He2", "He3")


class Slider(NamedTuple):
    """Where a slider starts and ends; `log` : it moves along a logarithmic scale."""

    value: float
    low: float
    high: float
    log: bool


def slider_of(given: Any) -> Slider:
    """The slider of a number, or of (low, high) or (low, start, high): a hundredth to a hundredfold, about 0 from 0 to 1.

    >>> slider_of(0.1), slider_of(0), slider_of((0, 2))
    (Slider(value=0.1, low=0.001, high=10.0, log=True), Slider(value=0.0, low=0.0, high=1.0, log=False), Slider(value=1.0, low=0.0, high=2.0, log=False))
    """  # noqa: E501
    if isinstance(given, tuple | list):
        low, high = float(given[0]), float(given[-1])
        log = low > 0 and high >= 20*low
        middle = math.sqrt(low*high) if log else (low + high)/2
        return Slider(float(given[1]) if len(given) == 3 else middle, low, high, log)
    value = float(given)
    if value > 0:
        return Slider(value, float(f"{value/100:.12g}"), float(f"{100*value:.12g}"), True)
    return Slider(value, min(value, -1.0) if value < 0 else 0.0, 1.0, False)


def explorer(draw: Callable[[Mapping[str, float], Mapping[str, str]], Sequence[Panel]], numbers: Mapping[str, Any],
             functions: Mapping[str, str],
             slow: Callable[[Mapping[str, float], Mapping[str, str]], Mapping[str, Callable[[], Panel]]] = lambda *_: {}) -> Any:
    """The box of widgets: a slider for each number, a menu for each function, and the panels that `draw` makes of their values.

    A panel of `slow` has a button, which draws it below; a move removes it, as it would belong to other numbers. An error is
    shown in place of the panels.
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        raise MissingExtra("ipywidgets", "notebook", "explore") from None
    sliders, menus = {}, {}
    for name, given in numbers.items():
        r, style = slider_of(given), {"description_width": "60px"}
        if r.log:
            sliders[name] = widgets.FloatLogSlider(value=r.value, min=math.log10(r.low), max=math.log10(r.high), step=0.02, base=10,
                                                   description=name, style=style, readout_format=".3g")
        else:
            sliders[name] = widgets.FloatSlider(value=r.value, min=r.low, max=r.high, step=(r.high - r.low)/100, description=name,
                                                style=style, readout_format=".3g")
    for name, chosen in functions.items():
        known = ACTIVATIONS if name == "sigma" else TARGETS
        menus[name] = widgets.Combobox(value=chosen, options=list(dict.fromkeys((chosen, *known))), description=name,
                                       continuous_update=False, style={"description_width": "60px"})
    picture, below = widgets.HTML(), widgets.HTML()

    def current() -> tuple[dict[str, float], dict[str, str]]:
        return {n: s.value for n, s in sliders.items()}, {n: m.value for n, m in menus.items()}

    def show(place: Any, panels: Callable[[], Sequence[Panel]]) -> None:
        try:
            place.value = pictures(panels())
        except HermitexError as refused:
            place.value = f"<p>{escape(line(first_line(refused)))}</p>"

    def redraw(_: Any = None) -> None:
        below.value = ""
        show(picture, lambda: draw(*current()))

    for widget in (*sliders.values(), *menus.values()):
        widget.observe(redraw, names="value")
    redraw()
    buttons = {name: widgets.Button(description=f"Draw the {name}") for name in slow(*current())}
    for name, button in buttons.items():
        button.on_click(lambda _, name=name: show(below, lambda: [slow(*current())[name]()]))
    controls = [widgets.VBox(list(menus.values())), widgets.VBox(list(sliders.values())), widgets.VBox(list(buttons.values()))]
    return widgets.VBox([widgets.HBox(controls), picture, below])
