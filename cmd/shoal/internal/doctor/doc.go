// Package doctor examines the machine and the Shoal programs that run on it, and advises which
// settings should be changed.
//
//	report, err := doctor.Examine(ctx, time.Second)
//	if err != nil {
//		return err
//	}
//	return report.Print(os.Stdout)
//
// A report covers only the processes that the current user may see and the domains in the current
// network namespace.
package doctor
