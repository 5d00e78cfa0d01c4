package domains

var (
	Waits  = waitGraph
	Job    = workerJob
	Number = latestNumber
	Judge  = newLoader
)
