"""`jax._src.effects`: sets of kinds of effects, which libraries add their own to."""

from verax.ir.effects import NO_EFFECTS, Effect as Effect

no_effects = NO_EFFECTS


class EffectTypeSet:
    """Kinds of effects; verax lets every effect pass where it can be ordered."""

    def __init__(self) -> None:
        self.kinds: set[type] = set()

    def add_type(self, kind: type) -> None:
        self.kinds.add(kind)

    def contains(self, effect: object) -> bool:
        return any([isinstance(effect, kind) for kind in self.kinds])

    def filter_in(self, effects: set[object]) -> list[object]:
        return [effect for effect in effects if self.contains(effect)]

    def filter_not_in(self, effects: set[object]) -> list[object]:
        return [effect for effect in effects if not self.contains(effect)]


lowerable_effects = EffectTypeSet()
ordered_effects = EffectTypeSet()
control_flow_allowed_effects = EffectTypeSet()
custom_derivatives_allowed_effects = EffectTypeSet()
remat_allowed_effects = EffectTypeSet()
