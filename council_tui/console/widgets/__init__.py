"""What screens are made of; every list draws its own lines."""
