scontrol create reservation ReservationName=one StartTime=now+20minutes Duration=10 Nodes=n[1-5] Users=root Flags=MAINT,IGNORE_JOBS
scontrol create reservation ReservationName=two StartTime=now+45minutes Duration=15 Nodes=n[8-14] Users=root Flags=MAINT,IGNORE_JOBS
