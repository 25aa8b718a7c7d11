sacctmgr -i add qos std Priority=10
sacctmgr -i add qos small Priority=40 MaxTRESPerUser=gres/gpu=2
sacctmgr -i add qos pgpu MaxTRESPerUser=gres/gpu=6
sacctmgr -i add account vision Fairshare=40 QOS=std,small
sacctmgr -i add account speech Fairshare=30 QOS=std,small
sacctmgr -i add account robotics Fairshare=20 QOS=std,small
sacctmgr -i add account students Fairshare=10 QOS=std,small
sacctmgr -i add user daemon,bin account=vision Fairshare=1
sacctmgr -i add user games,man account=speech Fairshare=1
sacctmgr -i add user lp account=robotics Fairshare=2
sacctmgr -i add user mail account=robotics Fairshare=1
sacctmgr -i add user news,uucp account=students Fairshare=1
scontrol create reservation ReservationName=firmware StartTime=now+70minutes Duration=25 Nodes=h1,l[1-2] Users=root Flags=MAINT,IGNORE_JOBS
scontrol create reservation ReservationName=demo StartTime=now+20minutes Duration=30 Nodes=w[1-2] Accounts=robotics
