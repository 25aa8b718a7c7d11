"""What a change of the configuration would do: both schedules, and who gains and who loses."""
