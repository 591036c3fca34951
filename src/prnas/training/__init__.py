"""Training on Lightning Fabric: data, batch sizes, one state that is saved and resumed exactly."""
