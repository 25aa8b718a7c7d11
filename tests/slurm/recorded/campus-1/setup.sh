sacctmgr -i modify qos normal set Priority=10
sacctmgr -i add qos plong GrpTRES=cpu=40 MaxJobsPerUser=3
sacctmgr -i add qos teach Priority=40 MaxJobsPerUser=3 GrpTRES=cpu=12
sacctmgr -i add qos urgent Priority=100 MaxTRESPerUser=cpu=16
sacctmgr -i add account science Fairshare=60 QOS=normal,teach,urgent
sacctmgr -i add account chem parent=science Fairshare=40 QOS=normal,urgent
sacctmgr -i add account chemlab parent=chem Fairshare=10 QOS=normal,urgent
sacctmgr -i add account maths parent=science Fairshare=20 QOS=normal,urgent GrpTRES=cpu=72
sacctmgr -i add account eng Fairshare=30 QOS=normal,urgent
sacctmgr -i add account course Fairshare=10 QOS=normal,teach
sacctmgr -i add user daemon account=chem Fairshare=2
sacctmgr -i add user bin account=chem Fairshare=1
sacctmgr -i add user games account=chemlab Fairshare=1
sacctmgr -i add user man account=maths Fairshare=1
sacctmgr -i add user lp account=maths Fairshare=3 MaxJobs=4
sacctmgr -i add user mail account=eng Fairshare=1
sacctmgr -i add user news account=eng Fairshare=1
sacctmgr -i add user uucp account=course Fairshare=1
sacctmgr -i add user proxy account=course Fairshare=1
sacctmgr -i add user backup account=course Fairshare=1
