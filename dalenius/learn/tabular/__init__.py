"""Models of tables, fitted under a promise, with the methods that scikit-learn's tools ask for.

    promise, sums, columns        noise by shares of a promise, exact sums, rows as whole numbers
    affording                     whether that noise can be drawn, before anything is charged
    parameters, estimator         parameters and tags, the charge and the receipt: what all models share
    logistic                      LogisticRegression: residuals, descent (noisy gradients), objective
    moments, linear, components   LinearRegression and PCA, from noisy sums of products
    bayes                         GaussianNB and CategoricalNB, from noisy counts
    halving, clusters             KMeans, from a noisy picture of where rows are
    shapes, boosting              BoostedTrees, random shapes with noisy sums in their leaves

Neither PyTorch nor scikit-learn is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.learn.tabular.bayes import CategoricalNB, GaussianNB
    from dalenius.learn.tabular.boosting import BoostedTrees
    from dalenius.learn.tabular.clusters import KMeans
    from dalenius.learn.tabular.components import PCA
    from dalenius.learn.tabular.linear import LinearRegression
    from dalenius.learn.tabular.logistic import LogisticRegression
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "PCA": "dalenius.learn.tabular.components",
            "BoostedTrees": "dalenius.learn.tabular.boosting",
            "CategoricalNB": "dalenius.learn.tabular.bayes",
            "GaussianNB": "dalenius.learn.tabular.bayes",
            "KMeans": "dalenius.learn.tabular.clusters",
            "LinearRegression": "dalenius.learn.tabular.linear",
            "LogisticRegression": "dalenius.learn.tabular.logistic",
        },
    )

__all__ = [
    "PCA",
    "BoostedTrees",
    "CategoricalNB",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
]
