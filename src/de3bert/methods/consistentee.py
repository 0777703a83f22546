"""ConsistentEE: policy networks learn by reward when to leave."""

from de3bert.methods.method import METHODS, Method, Phase, Term

POLICY = Term("policy_gradient", needs=("memorised",))

METHODS.add(
    "consistentee",
    Method(
        name="consistentee",
        summary="a policy network per exit, trained by policy gradient; easy samples pay more",
        citation="Zeng et al., 2024: ConsistentEE",
        group="early exit",
        phases=(
            Phase((Term("cross_entropy"),), name="exits"),
            Phase(
                # Exits stay as they are here, so their accuracy cannot tell one epoch from another.
                (POLICY,), name="policy", trains=("router",), epochs="policy_epochs",
                own_rate="policy_rate", hook="memorised", judge="loss",
            ),
            Phase(
                (Term("sampled_cross_entropy"), POLICY), name="together", epochs="joint_epochs",
                hook="memorised", judge="loss",
            ),
        ),
        families=("certainty",),
        router="policy",
        options={
            "a": 0.05,  # what a layer costs in the reward; sets the speed of the model
            "rollouts": 8.0,
            "policy_epochs": 0.4,  # the three phases take 5, 2 and 2 epochs in the paper's code
            "joint_epochs": 0.4,
            "policy_rate": 3e-4,  # learning rate of the router in its own phase
        },
    ),
)  # fmt: skip
