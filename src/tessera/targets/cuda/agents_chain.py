"""The chain for sm_90a: a prepared tile function becomes one agent that copies and some that compute, pass by pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda.agents_model import MANY
from tessera.targets.cuda.agents_to_nv import lower_agents
from tessera.targets.cuda.agents_work import issues_most
from tessera.targets.cuda.boxes import is_mapped
from tessera.targets.cuda.budget import shared_bytes
from tessera.targets.cuda.choose_agents import AgentsPlan, is_lined, spare_registers, thread_registers
from tessera.targets.cuda.choose_plan import SHARED
from tessera.targets.cuda.tile_to_nv import crosses
from tessera.transforms.early_loads import early_loads
from tessera.transforms.finish_in_branches import finish_in_branches
from tessera.transforms.late_stores import late_stores
from tessera.transforms.lazy_maxima import lazy_maxima
from tessera.transforms.live_ranges import clip_ranges, split_ranges
from tessera.transforms.merge_masks import merge_masks
from tessera.transforms.order_products import order_products
from tessera.transforms.place_waits import place_waits
from tessera.transforms.promote_sums import promote_sums
from tessera.transforms.release_early import release_early
from tessera.transforms.share_rings import share_rings
from tessera.transforms.skew_dots import skew_dots
from tessera.transforms.skip_first_turns import skip_first_turns
from tessera.transforms.skip_turns import skip_turns
from tessera.transforms.specialize_roles import specialize_roles
from tessera.transforms.turn_factors import turn_factors


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
    bands, spare = crosses(function), spare_registers(function, plan.agents)

    def ordered(loop: scf.ForOp) -> bool:
        # While one of two agents multiplies, the other has one turn to compute: that pays if there is much of it.
        return plan.agents > MANY or issues_most(loop)

    clip_ranges(function)
    lazy_maxima(function)
    skew_dots(function)
    if not specialize_roles(
        function, agents=plan.agents, depth=plan.depth, ahead=plan.ahead, bands=bands, team=plan.team
    ):
        return False
    turn_factors(function)
    share_rings(function)
    skip_first_turns(function)
    split_ranges(function, common=ordered)
    merge_masks(function)
    promote_sums(function)
    place_waits(function)
    finish_in_branches(function)
    release_early(function)
    # Tiles of two axes are read in pieces, behind the wait.
    early_loads(function, lambda load: len(load.offsets) == 1 and thread_registers(load.result) <= spare)
    if plan.walks:
        # By a copy that goes on by itself, and out of registers that nobody else needs.
        late_stores(
            function,
            lambda store: is_mapped(store) and is_lined(store.view, lined) and thread_registers(store.value) <= spare,
        )
    skip_turns(function)
    order_products(function, ordered)
    lower_agents(module, name, lined=lined)
    return True
