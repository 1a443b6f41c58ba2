"""Train one model on all GPUs of this machine with TensorFlow: mirrored variables, half precision, accumulated gradients.

    python tensorflow_train.py
    python tensorflow_train.py --processors 2      # without a GPU: two devices out of the processor

One process drives all GPUs. Three ideas: (1) a strategy keeps the same variables on every GPU and adds their gradients up,
(2) a policy computes in half precision and keeps the variables in full precision, (3) small batches add up to a large one.
The loop is written out: what Keras has for (3) is not known to Keras 2 and does not work under (1).
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

STEPS = 60
EPOCHS = 3
SMALL_BATCH = 64  # on each device
ACCUMULATE = 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processors", type=int, default=0, help="so many devices out of the processor instead of GPUs")
    strategy = over(devices(parser.parse_args().processors))
    replicas = strategy.num_replicas_in_sync
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")  # (2) on cards before Ampere: "mixed_float16"
    tf.random.set_seed(7)
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Input((32,)),
                tf.keras.layers.Dense(256, activation="relu"),
                tf.keras.layers.Dense(8, dtype="float32"),
            ]
        )
        optimizer = tf.keras.optimizers.Adam(3e-3)
        optimizer.build(model.trainable_variables)  # its own variables are mirrored too, so they are made here

    def train(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """One step on one device."""
        variables = model.trainable_variables
        total, loss = [tf.zeros_like(one) for one in variables], 0.0
        for part, wanted in zip(tf.split(inputs, ACCUMULATE), tf.split(targets, ACCUMULATE)):  # noqa: B905 - `strict` came with Python 3.10
            with tf.GradientTape() as tape:
                # (1) (3) Each part counts as what it is of the whole batch: the sum of all gradients is the large batch's.
                share = tf.reduce_mean(tf.square(model(part, training=True) - wanted)) / (ACCUMULATE * replicas)
            total = [before + more for before, more in zip(total, tape.gradient(share, variables))]  # noqa: B905
            loss += share
        optimizer.apply_gradients(zip(total, variables))  # noqa: B905 - (1) adds up what all devices have, once a step
        return loss

    @tf.function
    def one_step(inputs: Any, targets: Any) -> tf.Tensor:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train, args=(inputs, targets)), axis=None)

    large = SMALL_BATCH * ACCUMULATE * replicas
    inputs = tf.random.normal((large * STEPS, 32), seed=7)
    data = tf.data.Dataset.from_tensor_slices((inputs, tf.tanh(inputs[:, :8]))).batch(large, drop_remainder=True)
    data = strategy.experimental_distribute_dataset(data)
    for epoch in range(EPOCHS):
        losses = [float(one_step(*batch)) for batch in data]
        print(f"epoch {epoch}  loss {sum(losses) / len(losses):.4f}  replicas {replicas}", flush=True)


def devices(processors: int) -> list[str]:
    """Return the names of the devices to train on: every GPU, else the processor as one or as many."""
    gpus = tf.config.list_physical_devices("GPU") if not processors else []
    for gpu in gpus:
        # Without this the first process takes all memory of every GPU.
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        return [f"GPU:{number}" for number in range(len(gpus))]
    parts = [tf.config.LogicalDeviceConfiguration() for _ in range(max(1, processors))]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
    return [f"CPU:{number}" for number in range(len(parts))]


def over(names: list[str]) -> tf.distribute.Strategy:
    """Return how the work is spread: mirrored over several devices, as it is on one."""
    return tf.distribute.MirroredStrategy(names) if len(names) > 1 else tf.distribute.get_strategy()


if __name__ == "__main__":
    main()
