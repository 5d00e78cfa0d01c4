package domains

var (
	Waits  = waits
	Job    = job
	Number = number
	Judge  = loader
)
