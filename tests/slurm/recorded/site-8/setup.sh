scontrol create reservation ReservationName=course StartTime=now Duration=400 Nodes=a[1-2] Users=root
scontrol create reservation ReservationName=cooling StartTime=now+35minutes Duration=12 Nodes=e[3-4] Users=root Flags=MAINT,IGNORE_JOBS
