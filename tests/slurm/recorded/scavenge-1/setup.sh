sacctmgr -i add qos scavenger Priority=0 PreemptMode=requeue
sacctmgr -i modify qos normal set Priority=20 Preempt=scavenger PreemptMode=cancel
sacctmgr -i add qos prio Priority=80 Preempt=scavenger MaxTRESPerUser=cpu=24 MaxJobsPerUser=2
sacctmgr -i add account astro Fairshare=30 QOS=normal,prio,scavenger
sacctmgr -i add account climate Fairshare=50 QOS=normal,prio,scavenger GrpTRES=cpu=64
sacctmgr -i add account startup Fairshare=5 QOS=normal,prio,scavenger GrpJobs=6 GrpTRESRunMins=cpu=2500
sacctmgr -i add user daemon,bin account=astro Fairshare=1
sacctmgr -i add user uucp account=astro Fairshare=4
sacctmgr -i add user games account=climate Fairshare=1
sacctmgr -i add user man account=climate Fairshare=1 MaxJobs=3
sacctmgr -i add user lp account=climate Fairshare=2
sacctmgr -i add user mail,news account=startup Fairshare=1
