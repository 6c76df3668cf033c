"""The whole audit, step by step, of a label with two classes or more."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from labelaudit.auditing import leaks, scenarios, words
from labelaudit.auditing.attack import MAX_RECORDS, Attacks
from labelaudit.auditing.decisions import (
    Choice,
    best_of,
    choose,
    close_under_noise,
    decide_all,
    recommend,
    settings_to_detail,
)
from labelaudit.auditing.eta import Eta, Progress, distinct, trusted_eta
from labelaudit.auditing.given_bags import attack_given_bags, bag_facts
from labelaudit.auditing.options import Options, Target, split
from labelaudit.auditing.report import Report
from labelaudit.auditing.search import searched
from labelaudit.auditing.settings import Setting, settings_for
from labelaudit.auditing.table import Columns, Table, read
from labelaudit.auditing.utility import measure_utility

MAX_EXPOSED = 10


def audit(
    table: str | Path | pd.DataFrame,
    label: str,
    *,
    ids: bool = True,
    progress: Progress = lambda line: None,
    **keywords: Any,
) -> Report:
    """Audit a table with a sensitive label: which mechanism meets a target, at what cost.

    `table` is a path (csv or parquet) or a pandas DataFrame. Keywords are the fields of `Columns`,
    which say what its columns are, and of `Options`, which say what to compare. A target may be a
    text such as "additive=0.01". Without `ids` no record is named. Labels may have 2 to 20 classes.

    >>> import labelaudit as la
    >>> frame = pd.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> report = la.audit(frame, "ill", prior="eta", mechanisms=["rr"], target="epsilon=1")
    >>> report
    <audit of a data frame: 4 settings. Publish RR (epsilon 1).>
    >>> report.verdicts["verdict"].tolist()
    ['meets', 'meets', 'misses', 'misses']
    """
    prepared = prepare(table, label, **keywords)
    return run(*prepared, progress=progress, ids=ids)


def prepare(
    table: str | Path | pd.DataFrame, label: str, **keywords: Any
) -> tuple[Table, Options, tuple[Setting, ...]]:
    """Check the keywords, then read the table and make the settings: what can be invalid."""
    about, chosen = split(keywords)
    columns, options = Columns(label=label, **about), Options(**chosen)
    read_table = read(table, columns)
    options = options.suit(read_table)
    return read_table, options, settings_for(read_table, options)


def run(
    table: Table,
    options: Options,
    settings: Sequence[Setting] = (),
    *,
    progress: Progress = lambda line: None,
    ids: bool = True,
) -> Report:
    """Estimate eta, attack every setting, find who is exposed and what it costs, and advise.

    >>> frame = pd.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> table = read(frame, Columns(label="ill", prior="eta"))
    >>> report = run(table, Options(mechanisms=["rr"], target="additive=0.05", search=False))
    >>> report.settings["verdict"].tolist()
    ['cannot tell', 'misses', 'misses', 'misses']
    """
    start, options = time.monotonic(), options.suit(table)
    settings = settings or settings_for(table, options)
    eta, target = trusted_eta(table, options, progress)
    stake = eta.at_stake(table.labels)
    doubtful = eta.doubtful_classes(target.matters(stake))
    bags, own, random = None, pd.DataFrame(), pd.DataFrame()
    if table.bags is not None:
        progress("the table's own bags")
        bags = bag_facts(table.bags, table.labels, eta.mean[:, 1])
        own, random = attack_given_bags(table, eta, options, settings)
    together = bags is not None and bags.move_together
    decided = partial(decide_all, target=target, trusted=not doubtful, together=together)
    attacks = Attacks(table, eta, options, progress)
    tried = close_under_noise(decided(attacks(settings)), target)
    if options.search:
        tried = pd.concat([tried, *searched(attacks, target, tried, decided)], ignore_index=True)
    own = close_under_noise(decided(own), target)
    costs = measure_utility(table, eta, list(tried["setting"]), options, progress)
    tried = tried.merge(costs.drop(columns="title"), on="setting", how="left")
    clean = next(costs.itertuples())
    choices = choose(tried, own, clean.auc)
    copies = leaks.leaking_columns(table)
    texts = leaks.warnings_of(table, copies)
    names = [table.classes[index] for index in doubtful] if len(table.classes) > 2 else []
    facts = (len(table), MAX_RECORDS, texts, not doubtful, eta.recalibrated, bags, names)
    return Report(
        **_conclusion(choices, tried, target, stake, in_bags=bags is not None, copies=copies),
        **_details(table, eta, settings_to_detail(choices, tried), options, progress, ids=ids),
        warnings=tuple(words.paragraphs("warnings", *facts)),
        table=table,
        options=options,
        target=target,
        eta=eta,
        settings=tried,
        clean=clean,
        own_bags=own,
        random_bags=random,
        bags=bags,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        seconds=time.monotonic() - start,
    )


def _conclusion(
    choices: Sequence[Choice],
    settings: pd.DataFrame,
    target: Target,
    stake: float,
    *,
    in_bags: bool,
    copies: Sequence[leaks.Leak],
) -> dict[str, Any]:
    """What follows from the verdicts and costs: the fields of a report that say what to publish."""
    empty, give_away = target.empty(stake), tuple(leak.column for leak in copies)
    choices = () if empty or give_away else tuple(choices)
    rows, recommended = list(settings.itertuples()), recommend(choices)
    facts = (best_of(choices), choices, rows, target, stake, in_bags, give_away)
    return {
        "choices": choices,
        "recommended": recommended,
        "give_away": give_away,
        "headline": words.sentence("headline", recommended, choices, rows, empty, give_away),
        "reasons": tuple(words.paragraphs("reasons", *facts)),
    }


def _details(
    table: Table,
    eta: Eta,
    chosen: Sequence[Setting],
    options: Options,
    progress: Progress,
    *,
    ids: bool,
) -> dict[str, Any]:
    """What is shown of one setting of each mechanism: fields of a report."""
    progress("who is exposed, and what more an attacker may know")
    groups = scenarios.by_group(table, eta, chosen, options.seed)
    # For several classes only the results by group are known.
    chosen = chosen if len(table.classes) == 2 else ()
    exposed = {}
    for setting in chosen if ids else ():
        with setting.naming_errors():
            exposed[setting.title] = scenarios.most_exposed(
                distinct(eta.positive), table.ids, setting.mechanism, MAX_EXPOSED, options.seed
            )
    return {
        "exposed": exposed,
        "knowing": scenarios.knowing_more(eta.positive, chosen, options),
        "drawn_again": scenarios.drawn_again(table, eta.positive[0], chosen, options),
        "groups": groups,
    }
