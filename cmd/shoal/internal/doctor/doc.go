// Package doctor looks at the machine as Shoal sees it, and at the Shoal programs that run on it,
// and says what to set.
//
//	report, err := doctor.Examine(ctx, time.Second)
//	if err != nil {
//		return err
//	}
//	return report.Print(os.Stdout)
//
// The trap: it sees only what this user may see, and domains only in its own network namespace.
package doctor
