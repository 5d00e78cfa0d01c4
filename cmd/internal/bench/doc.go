// Package bench measures Shoal on the current machine, relative to the limits of the machine and to
// PyTorch.
//
// A row is one measured quantity. Its floor is a lower bound for its cost on this machine, such as
// a cache line round trip between two processors, a memcpy or the kernel's notification of a death.
// It is measured in the same run, because the speed of a virtual machine may change by a factor of
// four within an hour. Its peer is the same work done by torch.multiprocessing, also in the same
// run. A row's measurements alternate round by round, so that disturbances affect all of them. The
// value of a row is the median over its rounds. It is printed as soon as it has been measured.
//
//	err := bench.Run(ctx, bench.Options{Suites: []string{"core"}, Out: os.Stdout, Log: os.Stderr})
//
// docs/bench.md describes each row, lists the latest figures and explains missed targets. docs/log
// has earlier runs.
//
// Readers should compare ratios rather than absolute times, and only within a run, because a floor
// is valid only for the run in which it was measured.
package bench
