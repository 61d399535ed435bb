"""The selective join paper's experiment: its figures by name."""

from __future__ import annotations

from tidegate_lab.reproduce.experiment import Experiment, Figure
from tidegate_lab.reproduce.selective_join import news_figures as news
from tidegate_lab.reproduce.selective_join.basic_window_figure import figure_9
from tidegate_lab.reproduce.selective_join.beyond import beyond
from tidegate_lab.reproduce.selective_join.correlation_figures import figure_6, figure_7, figure_8
from tidegate_lab.reproduce.selective_join.rate_figures import figure_3, figure_4, figure_5

EXPERIMENT = Experiment(
    "selective-join",
    "Adaptive load shedding for windowed stream joins",
    (
        Figure("3", "stream rates and r over time", figure_3),
        Figure("4", "output over time, rate adaptation and random drop", figure_4),
        Figure("5", "output by skew and window size", figure_5),
        Figure("6", "r₁ and r₂ over time", figure_6),
        Figure("7", "output over time, three join settings", figure_7),
        Figure("8", "output by skew, threshold 4", figure_8),
        Figure("9", "output by basic window size, without and with an index", figure_9),
        Figure("beyond", "our policy against one who knows", beyond),
    ),
    real=(
        Figure("3", "news: rates and r over time", news.figure_3),
        Figure("4", "news: output over time, rate adaptation and random drop", news.figure_4),
        Figure("5", "news: output by window size", news.figure_5),
        Figure("6", "news: r₁ and r₂ over time", news.figure_6),
        Figure("7", "news: output over time, all join settings", news.figure_7),
    ),
)
