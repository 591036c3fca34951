"""Limits on the final network, in the report and at a search's end."""

from random import Random

import pytest

from prnas.runs.events import SearchResult
from prnas.runs.record_lines import from_line, to_line
from prnas.runs.records import FitRecord, GenotypeRecord
from prnas.space.costs import Costs
from prnas.space.final_network import FinalNetwork
from prnas.space.fitting import NetworkLimits, derive_fitting
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Skip
from prnas.space.pools import Pools
from prnas.space.shape import Role
from prnas.terminal.ends import show_result
from tests.support.views import search_view


def found(params: int) -> tuple[Genotype, FitRecord]:
    """Cells of convolutions, within a limit."""
    weights: dict[Role, list[list[float]]] = dict.fromkeys(
        ("normal", "reduction"), [[1.0, 0.0]] * 14
    )
    pools = Pools.initial(4, [Conv(3), Skip()])
    limits = NetworkLimits(params=params)
    genotype, _, fit = derive_fitting(pools, weights, Random(0), Costs(FinalNetwork()), limits)
    return genotype, FitRecord.model_validate(fit.to_json())


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (10_000_000, "parameters (limit: 10 M parameters)"),
        (2_000_000, "(limit: 2 M parameters); "),
        (500_000, "(limit: 500 k parameters): nothing fits"),
    ],
)
def test_what_the_final_network_has(
    params: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    genotype, fit = found(params)
    record = GenotypeRecord(genotype=genotype.to_json(), fit=fit)
    assert from_line(to_line(record)) == record
    view = search_view()
    assert "Final network" not in dict(view.data()["facts"])
    view.add(record)
    told = dict(view.data()["facts"])["Final network"]
    assert said in told
    assert ("changed for it" in told) == (params == 2_000_000)
    show_result(SearchResult(genotype, None, (), (), 1.0, fit))
    assert told in capsys.readouterr().out


def test_a_record_without_limits_is_as_it_was() -> None:
    genotype, _ = found(10_000_000)
    assert '"fit"' not in to_line(GenotypeRecord(genotype=genotype.to_json()))
