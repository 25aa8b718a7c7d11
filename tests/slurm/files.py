"""Files of a small cluster, as Slurm and its commands write them."""

from __future__ import annotations

from pathlib import Path

CONF = """\
# a comment
clustername=toy
SlurmctldHost=head
SlurmctldPort=6817
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=20,bf_window=2880,bf_continue,\\
bf_yield_sleep=100000,max_rpc_cnt=150,no_env_cache,pack_serial_at_end
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_LLN
PriorityType = priority/multifactor
PriorityWeightAge=1000   # the older the better
PriorityWeightTRES=CPU=2000,Mem=100,GRES/gpu=3000
PriorityMaxAge=7-0
PriorityDecayHalfLife=14-0
PriorityFlags=NO_FAIR_TREE,MAX_TRES
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptExemptTime=00:10:00
AccountingStorageEnforce=safe,qos
JobSubmitPlugins=lua
AccountingStorageType=accounting_storage/slurmdbd
Licenses=matlab:10,idl
DefMemPerCPU=500
Include nodes.conf
Include parts-%c.conf
"""
NODES = """\
NodeName=DEFAULT RealMemory=8000 State=UNKNOWN
NodeName=n[01-08] CPUs=4 CoresPerSocket=4 Weight=1 Port=[7001-7008]
NodeName=g[1-2] Sockets=2 CoresPerSocket=4 RealMemory=32000 Gres=gpu:a100:4 Feature=a100,fast Weight=10 \\
    MemSpecLimit=100
"""
PARTITIONS = """\
PartitionName=DEFAULT State=UP MaxTime=2-0 DefaultTime=60
PartitionName=batch Nodes=n[01-08] Default=YES AllowGroups=staff
PartitionName=gpu Nodes=g[1-2] PriorityTier=5 PriorityJobFactor=10 MaxNodes=1 OverSubscribe=FORCE:2 QOS=high
PartitionName=all Nodes=ALL MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE AllowAccounts=physics,maths
"""
DUMP = """\
# To edit this file start with a cluster line
Cluster - 'toy':Fairshare=1:QOS='normal,high'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='Physics: all':Organization='x':Fairshare=10:GrpTRES=cpu=20,gres/gpu:tesla=2
Account - 'maths':Description='maths':Organization='x':Fairshare=30
Parent - 'physics'
User - 'ada':DefaultAccount='physics':Fairshare=5:MaxJobs=4:MaxWallDurationPerJob=60:GrpTRESMins=cpu=10
User - 'bob':DefaultAccount='maths':Fairshare=parent
"""
ASSOCIATIONS = """\
Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|MaxJobs|MaxWall|QOS|Def QOS|
toy|root|||1||||||normal||
toy| physics|||10|||cpu=20|||normal||
toy|  optics|||2||||||normal||
toy|   optics|ada||5||||4|1:00:00|normal|normal|
"""
QOS = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|MaxTRESPU|MaxJobsPU|MaxWall
normal|0|00:00:00||cluster||1.000000|cpu=10|5|
high|100|00:02:00|normal|requeue|DenyOnLimit,NoReserve|2.000000|||1-00:00:00
"""
SHARES = """\
Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.000000|3600|1.000000|
 physics||10|0.500000|3600|1.000000|
  physics|ada|5|0.500000|1800|1.000000|0.5
"""
RESERVATIONS = """\
ReservationName=upkeep StartTime=2026-03-01T08:30:00 EndTime=2026-03-01T08:50:00 Duration=00:20:00
   Nodes=n[01-06] NodeCnt=6 CoreCnt=24 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES
   TRES=cpu=24
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=course StartTime=2026-03-02T08:00:00 EndTime=2026-03-02T12:00:00 Duration=04:00:00
   Nodes=g1 NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=gpu Flags=DAILY
   Users=(null) Groups=(null) Accounts=maths Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
"""
#: One column a line, with @ for the date; the last job was cancelled while it waited.
_COLUMNS = {
    "JobID": "11 | 11.batch | 12 | 13 | 14",
    "User": "ada |  | bob | bob | bob",
    "Account": "physics | physics | maths | maths | maths",
    "QOS": "normal |  | high | normal | normal",
    "Partition": "batch |  | gpu | all | all",
    "JobName": "a |  | b | c | c",
    "Submit": "@08:00:00 | @08:00:10 | @08:01:00 | @08:02:00 | @08:03:00",
    "Eligible": "@08:00:00 | @08:00:10 | @08:11:00 | @08:02:00 | Unknown",
    "Start": "@08:00:10 | @08:00:10 | @08:20:00 | @08:30:00 | None",
    "End": "@08:10:10 | @08:10:10 | @08:30:00 | @08:40:00 | @08:04:00",
    "State": "COMPLETED | COMPLETED | COMPLETED | TIMEOUT | CANCELLED by 1",
    "ElapsedRaw": "600 | 600 | 600 | 600 | 0",
    "Timelimit": "00:30:00 |  | 01:00:00 | 00:10:00 | 00:10:00",
    "ReqCPUS": "4 | 4 | 2 | 8 | 8",
    "AllocCPUS": "4 | 4 | 2 | 8 | 0",
    "ReqMem": "500Mc |  | 1Gc | 500Mc | 500Mc",
    "ReqTRES": "cpu=4,mem=2000M,node=1 |  | cpu=2,mem=2G,node=1,gres/gpu=1 | cpu=8,mem=4000M,node=2 | cpu=8",
    "AllocTRES": "cpu=4,mem=2000M,node=1 |  | cpu=2,mem=2G,node=1,gres/gpu=1 | cpu=8,mem=4000M,node=2 | ",
    "NodeList": "n01 | n01 | g1 | n[01-02] | ",
}
_ROWS = zip(
    *([name, *(cell.strip() for cell in cells.split("|"))] for name, cells in _COLUMNS.items()), strict=True
)
LOG = "".join("|".join(row) + "\n" for row in _ROWS).replace("@", "2026-03-01T")


def write_cluster(folder: Path) -> Path:
    """Write all files of the cluster; returns the folder."""
    for name, text in {
        "slurm.conf": CONF,
        "nodes.conf": NODES,
        "parts-toy.conf": PARTITIONS,
        "dump.cfg": DUMP,
        "assoc.txt": ASSOCIATIONS,
        "qos.txt": QOS,
        "shares.txt": SHARES,
        "reservations.txt": RESERVATIONS,
        "jobs.sacct": LOG,
    }.items():
        (folder / name).write_text(text)
    return folder
