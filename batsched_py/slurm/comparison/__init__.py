"""Schedules that were recorded, beside simulated ones."""
