// Package bench measures Shoal on this machine: against what the machine can do at all, and against
// PyTorch.
//
// A row is one thing that is measured. Its floor is the least that anybody could pay for it here (a
// cache line that goes to and fro between two processors, a memcpy, the kernel's own notice of a
// death), measured in the same run, because the same virtual machine may be four times slower an
// hour later. Its peer is the same work done by a real torch.multiprocessing, in the same run too.
// All of a group are measured in turn, round by round, so that a disturbance meets each of them,
// and a row's value is the median of its rounds.
//
//	err := bench.Run(ctx, bench.Options{Suites: []string{"core"}, Out: os.Stdout, Log: os.Stderr})
//
// docs/bench.md describes each row, lists the latest figures and explains missed targets. docs/log
// has earlier runs.
//
// The trap: compare ratios, not nanoseconds, and not across runs. A floor belongs to the run that
// it was measured in.
package bench
