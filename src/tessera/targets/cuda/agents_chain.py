"""The chain for sm_90a: a prepared tile function becomes one agent that copies and some that compute, pass by pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects.builtin import ModuleOp

from tessera.dialects import tile
from tessera.errors import CompileError
from tessera.interpreters.engine import symbol_in
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda.agents_to_nv import lower_agents
from tessera.targets.cuda.budget import shared_bytes
from tessera.targets.cuda.choose_agents import AgentsPlan
from tessera.targets.cuda.choose_plan import SHARED
from tessera.targets.cuda.spread_functions import spread_functions
from tessera.targets.cuda.tile_to_nv import crosses
from tessera.transforms.finish_in_branches import finish_in_branches
from tessera.transforms.lazy_maxima import lazy_maxima
from tessera.transforms.live_ranges import clip_ranges, split_ranges
from tessera.transforms.place_waits import place_waits
from tessera.transforms.skew_dots import skew_dots
from tessera.transforms.skip_turns import skip_turns
from tessera.transforms.specialize_roles import specialize_roles


def with_agents(module: ModuleOp, name: str, plans: Iterable[AgentsPlan], lined: Collection[int]) -> ModuleOp | None:
    """The module under the first plan that fits; None where there is none, and the portable path has to do."""
    for plan in plans:
        made = module.clone()
        try:
            if not _lower(made, name, plan, lined):
                return None
        except CompileError:
            # It has no form for agents; who lowers it otherwise knows whether it has any.
            return None
        if shared_bytes(symbol_in(made, name, nv.FuncOp)) <= SHARED["sm_90a"]:
            return made
    return None


def _lower(module: ModuleOp, name: str, plan: AgentsPlan, lined: Collection[int]) -> bool:
    function = symbol_in(module, name, tile.FuncOp)
    bands = crosses(function)
    spread_functions(function)
    clip_ranges(function)
    lazy_maxima(function)
    skew_dots(function)
    if not specialize_roles(function, agents=plan.agents, depth=plan.depth, ahead=plan.ahead, bands=bands):
        return False
    split_ranges(function)
    place_waits(function)
    finish_in_branches(function)
    skip_turns(function)
    lower_agents(module, name, lined=lined)
    return True
