// Package diagnose explains faults of PyTorch jobs from the outside: which process is stuck, dead
// or slow, why, and the remedy.
//
//	report, err := diagnose.Examine(ctx, diagnose.Options{}, pid)
//	if err != nil {
//		return err
//	}
//	return report.Print(os.Stdout)
//
// It observes the processes of a job for about a second by reading /proc, and the Python stacks by
// reading the interpreter's memory if the kernel permits that. It neither stops nor signals a
// process, and it opens shared memory for reading only. The job need not know of Shoal.
//
// A rule must not report a finding unless the evidence excludes a healthy program that is merely
// slow. The caller should treat a report without findings as "no known fault", not as a proof.
package diagnose
