"""What runs in tiers: kernels and jitted functions, as `client.py` asks it of them; here, or sent to be compiled."""
