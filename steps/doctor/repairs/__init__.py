"""From a diagnosis to its repair: the steps, what to avoid, and the proof."""
