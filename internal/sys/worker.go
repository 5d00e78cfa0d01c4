package sys

// WorkerKey is the environment variable by which a new process knows that package shoal started it.
const WorkerKey = "SHOAL_WORKER"
