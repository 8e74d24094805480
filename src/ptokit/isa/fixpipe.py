"""The fix pipe: how accumulator values are converted on their way out."""
