package doctor

var (
	Advise      = advise
	PrintChecks = printChecks
)
