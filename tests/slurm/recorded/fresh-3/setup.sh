scontrol create reservation ReservationName=upkeep StartTime=now+25minutes Duration=15 Nodes=n[5-10] Users=root Flags=MAINT,IGNORE_JOBS
