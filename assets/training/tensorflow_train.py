"""Train one model on all GPUs of this machine with TensorFlow: mirrored variables, half precision, accumulated gradients.

    python tensorflow_train.py

One process drives all GPUs. Three ideas: (1) a strategy keeps the same variables on every GPU and adds their gradients up,
(2) a policy computes in half precision and keeps the variables in full precision, (3) small batches add up to a large one.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

STEPS = 60
BATCH = 256
ACCUMULATE = 4


def main() -> None:
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        # Without this the first process takes all memory of every GPU.
        tf.config.experimental.set_memory_growth(gpu, True)
    strategy = tf.distribute.MirroredStrategy() if len(gpus) > 1 else tf.distribute.get_strategy()  # (1)
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
        # (3) Keras adds up the gradients of so many steps before it changes a variable.
        optimizer = tf.keras.optimizers.Adam(3e-3, gradient_accumulation_steps=ACCUMULATE)
        model.compile(optimizer=optimizer, loss="mse")

    inputs = tf.random.normal((BATCH * STEPS, 32), seed=7)
    data = tf.data.Dataset.from_tensor_slices((inputs, tf.tanh(inputs[:, :8]))).batch(BATCH // ACCUMULATE)
    history = model.fit(data, epochs=3, verbose=0)
    for epoch, loss in enumerate(history.history["loss"]):
        print(f"epoch {epoch}  loss {loss:.4f}  replicas {strategy.num_replicas_in_sync}", flush=True)


if __name__ == "__main__":
    main()
