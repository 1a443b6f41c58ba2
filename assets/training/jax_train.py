"""Train one model on all devices of this machine with JAX: one program, the data split over the devices.

    python jax_train.py
    XLA_FLAGS=--xla_force_host_platform_device_count=3 python jax_train.py      # without a GPU: three devices out of the processor

Where PyTorch starts a process a GPU, JAX has one process and says where arrays lie. Three ideas: (1) the batch is split over the
devices and the weights are on each of them; the compiler puts in the exchange of gradients, (2) half precision for the
multiplications, full precision for the weights, (3) small batches whose gradients add up to a large one's.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = 60
SMALL_BATCH = 64  # on each device: any number of them gets parts of one size
ACCUMULATE = 4


def main() -> None:
    mesh = Mesh(jax.devices(), ("data",))
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(None, "data"))

    keys = jax.random.split(jax.random.key(7), 2)
    weights = {"in": jax.random.normal(keys[0], (32, 256)) / 6, "out": jax.random.normal(keys[1], (256, 8)) / 16}
    weights = jax.device_put(weights, everywhere)  # (1)

    for step in range(STEPS):
        inputs = jax.random.normal(jax.random.key(step), (ACCUMULATE, SMALL_BATCH * jax.device_count(), 32))
        inputs = jax.device_put(inputs, split)  # (1)
        weights, loss = one_step(weights, inputs)
        if step % 10 == 0 or step == STEPS - 1:
            print(f"step {step:3d}  loss {loss:.4f}  devices {jax.device_count()}", flush=True)


def loss_of(weights: dict[str, jax.Array], inputs: jax.Array) -> jax.Array:
    half = jnp.bfloat16  # (2) the range of float32 with a quarter of its digits: nothing has to be scaled
    hidden = jax.nn.relu(inputs.astype(half) @ weights["in"].astype(half))
    outputs = (hidden @ weights["out"].astype(half)).astype(jnp.float32)
    return jnp.mean((outputs - jnp.tanh(inputs[:, :8])) ** 2)


@jax.jit
def one_step(weights: dict[str, jax.Array], parts: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    def add(total: dict[str, jax.Array], inputs: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(weights, inputs)
        return jax.tree.map(lambda a, b: a + b / ACCUMULATE, total, gradients), loss

    # (3) scan keeps one small batch in memory at a time.
    gradients, losses = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), parts)
    return jax.tree.map(lambda w, g: w - 0.3 * g, weights, gradients), losses.mean()


if __name__ == "__main__":
    main()
