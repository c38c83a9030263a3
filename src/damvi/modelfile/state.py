"""A fitted DAMVIClassifier as values: what predictions and certificates need of it."""

from __future__ import annotations

from ..class_deciding import ClassDecision
from ..classifier import DAMVIClassifier
from ..deciding import Decision
from .errors import ModelFileError
from .state_checks import check_classes, check_classifier
from .values import Json, Reader, Writer

ATTRIBUTES = (
    "classes_",
    "pos_label_",
    "n_features_in_",
    "feature_names_in_",
    "weights_",
    "threshold_",
    "eta_",
    "c_bound_",
    "gibbs_risk_",
    "disagreement_",
    "_voters",
    "_keeps_frames",
    "_majority",
    "_seed",
    "_fingerprint",
    "_row_prints",
)
"""All that ``fit`` leaves, but for the votes on the training rows, which are too many."""
DECIDED = ("threshold", "tuning", "unseen_vote", "calibrator")
"""Of the decision: what was learned from these votes."""
ADDED = ("unlabeled", "eta", "positive_rate")
"""Parameters that the first files have not got, and that mean nothing in them."""
SOMETIMES = {"feature_names_in_", "_seed", "_fingerprint"}


def write_classifier(writer: Writer, model: DAMVIClassifier) -> dict[str, Json]:
    """Parameters and fitted attributes."""
    if type(model) is not DAMVIClassifier:
        raise ModelFileError(
            f"only a DAMVIClassifier can be saved, and this is a {type(model).__name__}"
        )
    if not hasattr(model, "weights_"):
        raise ModelFileError("the classifier is not fitted yet; call fit, then save it")
    # The voters come first: where one cannot be saved, it is named.
    known = vars(model)
    fitted = writer.state({name: known[name] for name in ATTRIBUTES if name in known})
    decided = writer.state({name: getattr(model._decision, name) for name in DECIDED})
    params = {}
    for name, value in model.get_params(deep=False).items():
        with writer.within(f"the parameter {name!r} of the classifier"):
            params[name] = writer.write(value)
    return {"fitted": fitted, "decided": decided, "params": params}


def read_classifier(reader: Reader, said: dict[str, Json]) -> DAMVIClassifier:
    """The classifier that was written."""
    model = DAMVIClassifier()
    fitted = {"eta_": 0.0} | reader.state(said["fitted"])
    params = {name: getattr(model, name) for name in ADDED}
    params |= reader.state(said["params"])
    if params.keys() != model.get_params(deep=False).keys():
        odd = sorted(params.keys() ^ model.get_params(deep=False).keys())
        raise ModelFileError(
            f"its parameters are not those of this damvi's classifier ({', '.join(odd)})"
        )
    for name, value in params.items():
        setattr(model, name, value)
    if not set(ATTRIBUTES) - SOMETIMES <= fitted.keys() <= set(ATTRIBUTES):
        odd = sorted(set(ATTRIBUTES) ^ fitted.keys())
        raise ModelFileError(f"the classifier is not whole ({', '.join(odd)})")
    decided = reader.state(said["decided"])
    if decided.keys() != set(DECIDED):
        raise ModelFileError("the classifier's decision is not whole")
    model.__dict__.update(fitted)
    n_classes = check_classes(model)
    model._decision = (Decision if n_classes == 2 else ClassDecision).restored(**decided)
    check_classifier(model)
    return model
