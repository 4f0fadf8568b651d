"""The colours of a drawn plan: one for each kind of thing."""

from railgun.explain.svg_canvas import Paint

INK = "#1f2933"
MUTED = "#6b7785"
RULE = "#d5dbe3"
LINK = "#b4bfcc"

WINDOW = Paint("#e3effb", "#5b93cf", INK)
WINDOW_OPEN = Paint("#e3effb", "#5b93cf", INK, dashed=True)
FILTER = Paint("#fdf1d8", "#d3a037", INK)
GROUP = Paint("#e2f3e6", "#5aa56c", INK)
METRIC = Paint("#ffffff", "#8492a3", INK)
CELL = Paint("#f4f0fa", "#b7a3d6", INK)
CELL_SHARED = Paint("#dccdf2", "#7d5bb5", INK)
SHARED_LINK = "#9d82c9"
