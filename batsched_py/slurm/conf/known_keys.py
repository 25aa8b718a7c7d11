"""The settings of a ``slurm.conf`` of version 22.05 that the twin does not have, in small letters."""

from __future__ import annotations

#: These may shape schedules.
UNMODELLED = frozenset(
    """batchstarttimeout burstbuffertype dependencyparameters disablerootjobs downnodes epilogmsgtime
    federationparameters frontendname healthcheckinterval healthcheckprogram jobsubmitplugins
    launchparameters maxtaskspernode nodefeaturesplugins prioritysitefactorparameters
    prioritysitefactorplugin priorityparameters prologflags requeueexit requeueexithold resumerate
    resumeprogram resumetimeout resvoverrun schedulertimeslice suspendexcnodes suspendexcparts
    suspendprogram suspendrate suspendtime suspendtimeout topologyparam unkillablesteptimeout vsizefactor
    powerparameters powerplugin epilogslurmctld prologslurmctld prolog epilog""".split()
)

#: These do not.
WITHOUT_EFFECT = frozenset(
    """accountingstoragebackuphost accountingstorageexternalhost accountingstoragehost
    accountingstorageparameters accountingstoragepass accountingstorageport accountingstoragetres
    accountingstoragetype accountingstorageuser accountingstoreflags acctgatherenergytype
    acctgatherfilesystemtype acctgatherinterconnecttype acctgathernodefreq acctgatherprofiletype
    allowspecresourcesusage authaltparameters authalttypes authinfo authtype backupaddr backupcontroller
    bcastexclude bcastparameters clifilterplugins communicationparameters controladdr controlmachine
    corespecplugin cpufreqdef cpufreqgovernors credtype debugflags eiotimeout extsensorsfreq
    extsensorstype firstjobid getenvtimeout grestypes groupupdateforce groupupdatetime
    healthchecknodestate inactivelimit interactivestepoptions jobacctgatherfrequency jobacctgatherparams
    jobacctgathertype jobcomphost jobcomploc jobcompparams jobcomppass jobcompport jobcomptype
    jobcompuser jobcontainertype jobfileappend keepalivetime killonbadexit launchtype logtimeformat
    maildomain mailprog maxdbdmsgs maxjobid maxnodecount maxstepcount mcsparameters mcsplugin
    minjobage mpidefault mpiparams overmemorykill plugindir plugstackconfig
    preparameters prepparameters prepplugins privatedata proctracktype prologepilogtimeout
    propagateprioprocess propagateresourcelimits propagateresourcelimitsexcept rebootprogram
    reconfigflags resumefailprogram resvepilog resvprolog returntoservice routeplugin scronparameters
    slurmctldaddr slurmctlddebug slurmctldhost slurmctldlogfile slurmctldparameters slurmctldpidfile
    slurmctldplugstack slurmctldport slurmctldprimaryoffprog slurmctldprimaryonprog
    slurmctldsyslogdebug slurmctldtimeout slurmddebug slurmdlogfile slurmdparameters slurmdpidfile
    slurmdport slurmdspooldir slurmdsyslogdebug slurmdtimeout slurmduser slurmschedlogfile
    slurmschedloglevel slurmuser srunepilog srunportrange srunprolog statesavelocation switchparameters
    switchtype taskepilog taskplugin taskpluginparam taskprolog tcptimeout tmpfs trackwckey treewidth
    unkillablestepprogram usepam waittime x11parameters""".split()
)

#: Settings of nodes that the machine and the configuration have.
NODE_KEYS = frozenset(
    """nodename cpus procs sockets socketsperboard boards corespersocket threadspercore realmemory gres
    feature features weight state""".split()
)
NODE_WITHOUT_EFFECT = frozenset("nodehostname nodeaddr bcastaddr port reason tmpdisk cpubind".split())
NODE_UNMODELLED = frozenset("corespeccount cpuspeclist memspeclimit".split())
