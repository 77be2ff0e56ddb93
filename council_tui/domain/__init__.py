"""Facts and rules: no clock, no disk, no asyncio."""
