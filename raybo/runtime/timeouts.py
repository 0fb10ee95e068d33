"""How long the parts of the runtime wait for each other, in seconds."""

# The driver for its coordinator
POLL_SECONDS = 0.5  # a waiting poll returns; Ctrl-C is noticed between two polls
ANSWER_SECONDS = 30.0  # for an answer to a poll: a coordinator may be starting
RETRY_SECONDS = 0.2  # between two tries to reach a coordinator, or to take its name
SILENCE_SECONDS = 600.0  # without any answer, the study is given up

# The driver for the coordinator of another driver
ALIVE_SECONDS = 5.0  # a driver that polled within this time is alive
GONE_SECONDS = 40.0  # for the coordinator of a killed driver to end

# The driver for the proposers that it keeps for the next study
REST_SECONDS = 0.5  # for an answer of one that has nothing to do; a busy one is ended
KEEP_SECONDS = 300.0  # unused: a pause between two cells of a notebook, or two runs of a loop

# The coordinator
FETCH_SECONDS = 60.0  # for the session to arrive from the object store
LOCK_SECONDS = 30.0  # for the lock of the journal: a killed driver's coordinator needs some to end
TICK_SECONDS = 0.25  # between two looks at the clock
NODES_SECONDS = 2.0  # between two looks at the nodes
GATHER_SECONDS = 0.05  # trials are handed to the driver in batches: short ones end by the hundred
IDLE_SECONDS = 1.0  # without a running trial, people are told why
PROPOSAL_SECONDS = 1800.0  # for a call of a proposer, which is replaced after it

# A worker
LOAD_SECONDS = 600.0  # for the objective and its data to arrive on a node
MESSAGE_SECONDS = 0.01  # between two messages of an evaluator: short trials end by the hundred
CANCEL_SECONDS = 5.0  # for a coroutine to end when it is cancelled; its process is killed then
CONFIRM_SECONDS = 60.0  # for the coordinator to confirm that it knows of an attempt

# The cluster, before a study
FREE_SECONDS = 3.0  # for the resources of a study that has just ended to be free again
REACH_SECONDS = 2.0  # for a cluster that is said to run on this machine to answer
PROBE_SECONDS = 60.0  # for a worker on another machine to start and answer
