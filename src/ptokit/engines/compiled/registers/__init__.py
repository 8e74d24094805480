"""Operations on registers and masks, compiled."""
