"""Inter-device communication."""
