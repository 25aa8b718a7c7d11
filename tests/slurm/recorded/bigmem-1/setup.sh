sacctmgr -i add account geno Fairshare=30
sacctmgr -i add account imaging Fairshare=10
sacctmgr -i add user daemon,bin,games,news account=geno Fairshare=1
sacctmgr -i add user man,lp account=imaging Fairshare=2
sacctmgr -i add user mail account=imaging Fairshare=1
