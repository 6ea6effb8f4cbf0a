"""Private training on PyTorch: clipping example by example in one backward pass, exact noise, true accounts.

    dataflow                      states of tensors, and the rule of each operator: which examples meet where
    tape, criteria, checkpointing watch a loop from batch to step, and refuse losses that mix examples
    marks, placing, rules         what meets a parameter, and by which rule
    linear … recurrent, anything  what each kind of layer adds to its parameters' gradients, by example
    parts, lookups, gradients     norms and weighted sums of these, without ever holding all of them
    clipping, adding, noising     clipped sums of a batch, and the noise on them; numerics is their model
    sampling, batch_draws, loader how batches are drawn, and what that makes of the loss
    run_settings                  the settings of a run
    payment, stretches            what a run costs, and what of it is charged when
    private                       the run that these are parts of; fitting makes one in one call
    data                          rows read, collated and padded one at a time: shapes of batches are public
    example_loss, example_calls   losses that see one example; lifted_functions runs their layers on all
    attempts, journal, state      a run that is broken off goes on: the same noise, or another charge
    run_files, export             what is written: a secret state, weights with their receipt
    released_state, fingerprints  the check that weights hold nothing but what the optimizer put there
    features                      features of one record each, which are free, and their mean, which is not
    evaluation                    how well any model does on private rows, as charged releases
    serving, shards               a model that is never published answers questions, each charged
    rows, models, whose           rows and models of any kind, as these two see them, and whose rows are
    tuning                        the best of a secret number of runs, for the price of a few
    pate                          a student of noisy votes: teachers of any kind, of scikit-learn or torch
    tabular                       models of tables as scikit-learn has them; these need no torch

Each name is loaded when first used, and torch with it where it trains: `pip install 'dalenius[learn]'`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names
from dalenius.errors import MissingExtra

if TYPE_CHECKING:
    from dalenius.learn import pate as pate
    from dalenius.learn.adam import Adam
    from dalenius.learn.adaptive import Quantile
    from dalenius.learn.averaging import Average
    from dalenius.learn.clipping import Absolute, Automatic, Flat, PerLayer
    from dalenius.learn.custom_functions import register_function
    from dalenius.learn.data.padding import Pad
    from dalenius.learn.evaluation.evaluating import evaluate
    from dalenius.learn.export import read_receipt
    from dalenius.learn.features.centering import mean_of
    from dalenius.learn.features.normalizing import normalized
    from dalenius.learn.features.scattering import Scattering, scattering
    from dalenius.learn.fitting import fit
    from dalenius.learn.optimizer import PrivateOptimizer
    from dalenius.learn.private import Private
    from dalenius.learn.replacing import replaced
    from dalenius.learn.serving.ensemble import Ensemble
    from dalenius.learn.serving.service import serve
    from dalenius.learn.tuning import Tuned, tune, tuning_loss
else:
    _HOMES = {
        "Absolute": "dalenius.learn.clipping",
        "Adam": "dalenius.learn.adam",
        "Automatic": "dalenius.learn.clipping",
        "Average": "dalenius.learn.averaging",
        "Ensemble": "dalenius.learn.serving.ensemble",
        "Flat": "dalenius.learn.clipping",
        "Pad": "dalenius.learn.data.padding",
        "PerLayer": "dalenius.learn.clipping",
        "Private": "dalenius.learn.private",
        "PrivateOptimizer": "dalenius.learn.optimizer",
        "Quantile": "dalenius.learn.adaptive",
        "Scattering": "dalenius.learn.features.scattering",
        "Tuned": "dalenius.learn.tuning",
        "evaluate": "dalenius.learn.evaluation.evaluating",
        "fit": "dalenius.learn.fitting",
        "mean_of": "dalenius.learn.features.centering",
        "normalized": "dalenius.learn.features.normalizing",
        "pate": "dalenius.learn.pate",
        "read_receipt": "dalenius.learn.export",
        "register_function": "dalenius.learn.custom_functions",
        "replaced": "dalenius.learn.replacing",
        "scattering": "dalenius.learn.features.scattering",
        "serve": "dalenius.learn.serving.service",
        "tabular": "dalenius.learn.tabular",
        "tune": "dalenius.learn.tuning",
        "tuning_loss": "dalenius.learn.tuning",
    }
    # Of models that anything made.
    _ANY = {"Ensemble", "Tuned", "evaluate", "pate", "serve", "tabular", "tune", "tuning_loss"}
    _get, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> object:
        if name in _HOMES.keys() - _ANY and find_spec("torch") is None:
            raise MissingExtra(
                "Private training needs PyTorch, which is not installed.",
                remedy="Run pip install 'dalenius[learn]'.",
            )
        return _get(name)


__all__ = [
    "Absolute",
    "Adam",
    "Automatic",
    "Average",
    "Ensemble",
    "Flat",
    "Pad",
    "PerLayer",
    "Private",
    "PrivateOptimizer",
    "Quantile",
    "Scattering",
    "Tuned",
    "evaluate",
    "fit",
    "mean_of",
    "normalized",
    "read_receipt",
    "register_function",
    "replaced",
    "scattering",
    "serve",
    "tune",
    "tuning_loss",
]
