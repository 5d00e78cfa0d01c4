// Package domains finds the Shoal programs of this user that run, and says what their memory and
// their processes do.
//
//	census, err := domains.Look(ctx, time.Second)
//	if err != nil {
//		return err
//	}
//	for _, d := range census.Domains {
//		d.Print(os.Stdout)
//	}
//
// A Watcher looks again and again, and costs less.
//
// The trap: a rate is of the time for which it looked, so a process that began or ended meanwhile
// has none.
package domains
