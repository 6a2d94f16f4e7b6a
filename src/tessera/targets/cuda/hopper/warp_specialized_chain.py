"""The passes for sm_90a: a prepared tile function becomes one producer and some consumers."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.hopper.choose_warp_groups import AgentsPlan, is_lined, spare_registers, thread_registers
from tessera.targets.cuda.hopper.modelled_work import issues_most
from tessera.targets.cuda.hopper.tma_boxes import is_mapped
from tessera.targets.cuda.hopper.warp_groups_to_nv import lower_agents
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.budget import shared_bytes
from tessera.targets.cuda.lower.choose_plan import SHARED
from tessera.targets.cuda.lower.multiprocessor_model import MANY
from tessera.targets.cuda.lower.tile_to_nv import crosses
from tessera.transforms.algebra.lazy_rescale import lazy_maxima
from tessera.transforms.algebra.merge_masks import merge_masks
from tessera.transforms.algebra.sink_into_branches import finish_in_branches
from tessera.transforms.loops.live_iterations import clip_ranges, split_ranges
from tessera.transforms.pipelining.defer_epilogue_store import late_stores
from tessera.transforms.pipelining.early_exit_consumers import skip_turns
from tessera.transforms.pipelining.insert_wgmma_waits import place_waits
from tessera.transforms.pipelining.late_start_consumers import skip_first_turns
from tessera.transforms.pipelining.multicast_loads import share_rings
from tessera.transforms.pipelining.pingpong_consumers import order_products
from tessera.transforms.pipelining.prefetch_epilogue import early_loads
from tessera.transforms.pipelining.promote_accumulators import promote_sums
from tessera.transforms.pipelining.release_early import release_early
from tessera.transforms.pipelining.software_pipeline_dots import skew_dots
from tessera.transforms.pipelining.transpose_operands import turn_factors
from tessera.transforms.pipelining.warp_specialize import specialize_roles


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
