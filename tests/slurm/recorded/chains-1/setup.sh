scontrol create reservation ReservationName=fix StartTime=now+25minutes Duration=15 Nodes=n[5-8] Users=root Flags=MAINT,IGNORE_JOBS
