scontrol create reservation ReservationName=maint StartTime=now+25minutes Duration=15 Nodes=s[4-5],i[5-6] Users=root Flags=MAINT
