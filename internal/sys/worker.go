package sys

// WorkerKey is the environment variable that tells a new process that package shoal started it.
const WorkerKey = "SHOAL_WORKER"
