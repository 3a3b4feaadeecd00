"""The burn-in role: exercises logic, multipliers, block RAM, memory and link, and checks them."""
