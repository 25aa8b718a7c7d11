scontrol create reservation ReservationName=pdu StartTime=now+35minutes Duration=15 Nodes=x[3-5],z[3-4] Users=root Flags=MAINT,IGNORE_JOBS
